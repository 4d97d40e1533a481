package server_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/sluice-mesh/sluice/internal/server"
)

// An instant answers at once, always the same.
type instant struct {
	rlsv3.UnimplementedRateLimitServiceServer
}

func (instant) Answer(context.Context, string) (answer []byte, known bool, err error) {
	return []byte("\x08\x01"), true, nil
}

// A burst is requests as bytes, which differ by the number of their streams
// alone.
type burst struct {
	bytes   []byte
	streams []int // where the numbers are
	next    uint32
}

func newBurst(b *testing.B, requests int) *burst {
	b.Helper()
	var block, out bytes.Buffer
	e := hpack.NewEncoder(&block)
	e.SetMaxDynamicTableSize(0)
	for _, f := range []hpack.HeaderField{
		{Name: ":method", Value: "POST"},
		{Name: ":scheme", Value: "http"},
		{Name: ":path", Value: "/" + server.RateLimitName + "/ShouldRateLimit"},
		{Name: ":authority", Value: "x"},
		{Name: "content-type", Value: "application/grpc"},
		{Name: "te", Value: "trailers"},
	} {
		if err := e.WriteField(f); err != nil {
			b.Fatal(err)
		}
	}
	message := append([]byte{0, 0, 0, 0, 60}, make([]byte, 60)...)
	frames, all := http2.NewFramer(&out, nil), &burst{next: 1}
	for range requests {
		all.streams = append(all.streams, out.Len()+5)
		_ = frames.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true}) // into memory
		all.streams = append(all.streams, out.Len()+5)
		_ = frames.WriteData(1, true, message)
	}
	all.bytes = out.Bytes()
	return all
}

// send sends the requests on new streams.
func (a *burst) send(b *testing.B, w io.Writer) {
	b.Helper()
	for i, at := range a.streams {
		binary.BigEndian.PutUint32(a.bytes[at:], a.next)
		a.next += 2 * uint32(i%2)
	}
	if _, err := w.Write(a.bytes); err != nil {
		b.Fatal(err)
	}
}

// answers reads until so many streams have ended.
func answers(b *testing.B, frames *http2.Framer, streams int) {
	b.Helper()
	for streams > 0 {
		frame, err := frames.ReadFrame()
		if err != nil {
			b.Fatal(err)
		}
		switch f := frame.(type) {
		case *http2.HeadersFrame:
			if f.StreamEnded() {
				streams--
			}
		case *http2.PingFrame:
			if !f.IsAck() {
				_ = frames.WritePing(true, f.Data)
			}
		}
	}
}

// BenchmarkWire is from the bytes of a request to those of its answer, with
// nothing to decide between, at one request after the other and at 16 at a time.
func BenchmarkWire(b *testing.B) {
	for name, size := range map[string]int{"1": 1, "16": 16} {
		b.Run(name, func(b *testing.B) {
			conn := dialInstant(b)
			frames := http2.NewFramer(conn, conn)
			if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
				b.Fatal(err)
			}
			_ = frames.WriteSettings()
			_ = frames.WriteWindowUpdate(0, 1<<31-1-1<<16) // more than all answers take
			requests := newBurst(b, size)
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; n += size {
				requests.send(b, conn)
				answers(b, frames, size)
			}
		})
	}
}

func dialInstant(b *testing.B) net.Conn {
	b.Helper()
	l, err := server.Listen("127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	s := server.New(server.Options{Services: []server.Service{server.RateLimit(instant{})}})
	go func() { ended <- s.Run(ctx, l) }()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = conn.Close()
		cancel()
		if err := <-ended; err != nil {
			b.Errorf("Run = %v, want no error", err)
		}
	})
	return conn
}
