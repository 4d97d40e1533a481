package server_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/sluice-mesh/sluice/internal/server"
)

// A rude client speaks HTTP/2 and cares for no limit.
type rude struct {
	t      *testing.T
	conn   net.Conn
	frames *http2.Framer
	next   uint32 // stream
}

func dialRude(t *testing.T, addr string) *rude {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(20 * time.Second)) //nolint:errcheck // a socket has deadlines
	r := &rude{t: t, conn: conn, frames: http2.NewFramer(conn, conn), next: 1}
	r.frames.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := r.frames.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return r
}

// open opens a stream with a call, and headers that are so large.
func (r *rude) open(size int) uint32 {
	r.t.Helper()
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for _, f := range []hpack.HeaderField{
		{Name: ":method", Value: "POST"},
		{Name: ":scheme", Value: "http"},
		{Name: ":path", Value: "/test.Echo/Call"},
		{Name: ":authority", Value: "x"},
		{Name: "content-type", Value: "application/grpc"},
		{Name: "te", Value: "trailers"},
		{Name: "x-large", Value: strings.Repeat("x", size)},
	} {
		if err := e.WriteField(f); err != nil {
			r.t.Fatal(err)
		}
	}
	id := r.next
	r.next += 2
	first, rest := block.Bytes()[:min(block.Len(), 16<<10)], block.Bytes()[min(block.Len(), 16<<10):]
	err := r.frames.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: first, EndHeaders: len(rest) == 0})
	for len(rest) > 0 && err == nil {
		n := min(len(rest), 16<<10)
		err = r.frames.WriteContinuation(id, n == len(rest), rest[:n])
		rest = rest[n:]
	}
	if err == nil {
		_ = r.frames.WriteData(id, true, []byte{0, 0, 0, 0, 0})
	}
	return id // whatever the server makes of it: fate tells
}

// fate is what becomes of a stream: its reset, its headers' status, or the end
// of the connection.
func (r *rude) fate(id uint32) string {
	r.t.Helper()
	for {
		frame, err := r.frames.ReadFrame()
		if err != nil {
			return "closed"
		}
		switch f := frame.(type) {
		case *http2.RSTStreamFrame:
			if f.StreamID == id {
				return f.ErrCode.String()
			}
		case *http2.MetaHeadersFrame:
			if f.StreamID != id {
				continue
			}
			for _, h := range f.Fields {
				if h.Name == "grpc-status" || h.Name == ":status" && h.Value != "200" {
					return h.Name + " " + h.Value
				}
			}
		}
	}
}

// A connection has no more requests under way than it may, whatever its client
// sends; those it has are answered.
func TestMaxStreams(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}, 3), make(chan struct{})
	r := run(t, server.Options{MaxStreams: 2, Services: []server.Service{echo(func(context.Context) error {
		entered <- struct{}{}
		<-leave
		return nil
	})}})
	c := dialRude(t, r.addr.String())
	first := c.open(0)
	c.open(0)
	<-entered
	<-entered
	if got := c.fate(c.open(0)); got != "REFUSED_STREAM" {
		t.Errorf("the third stream of 2: %s, want REFUSED_STREAM", got)
	}
	close(leave)
	if got := c.fate(first); got != "grpc-status 0" {
		t.Errorf("the first stream: %s, want grpc-status 0", got)
	}
}

// Large headers end in an error of their own stream, or of their connection,
// and other clients do not notice.
func TestMaxHeaderSize(t *testing.T) {
	t.Parallel()
	r := run(t, server.Options{MaxHeaderSize: 8 << 10, Services: []server.Service{echo(func(context.Context) error { return nil })}})
	for size, refused := range map[int]bool{4 << 10: false, 9 << 10: true, 1 << 20: true} {
		c := dialRude(t, r.addr.String())
		if got := c.fate(c.open(size)); (got != "grpc-status 0") != refused {
			t.Errorf("a call with %d bytes of headers: %s, want refused %v", size, got, refused)
		}
	}
	if err := r.call(t.Context()); err != nil {
		t.Errorf("Call = %v after that, want an answer", err)
	}
}

func TestMaxMessageSize(t *testing.T) {
	t.Parallel()
	r := run(t, server.Options{MaxMessageSize: 1 << 10, Services: []server.Service{echo(func(context.Context) error { return nil })}})
	for size, want := range map[int]codes.Code{512: codes.OK, 2 << 10: codes.ResourceExhausted, 1 << 20: codes.ResourceExhausted} {
		err := r.conn.Invoke(t.Context(), "/test.Echo/Call", wrapperspb.Bytes(make([]byte, size)), new(emptypb.Empty))
		if status.Code(err) != want {
			t.Errorf("Call with %d bytes = %v, want %v", size, err, want)
		}
	}
	// One that only says that it is large costs nothing.
	c := dialRude(t, r.addr.String())
	id := c.open(0)
	var head [5]byte
	binary.BigEndian.PutUint32(head[1:], 1<<31)
	_ = c.frames.WriteData(id, true, head[:]) // the stream may have ended
	if err := r.call(metadata.AppendToOutgoingContext(t.Context(), "x", "y")); err != nil {
		t.Errorf("Call = %v after that, want an answer", err)
	}
}

// Messages of many windows arrive, side by side.
func TestLargeMessages(t *testing.T) {
	t.Parallel()
	r := run(t, server.Options{Services: []server.Service{echo(func(context.Context) error { return nil })}})
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() {
			sent, got := wrapperspb.Bytes(bytes.Repeat([]byte("x"), 3<<20)), new(wrapperspb.BytesValue)
			if err := r.conn.Invoke(t.Context(), "/test.Echo/Call", sent, got); err != nil || !bytes.Equal(got.GetValue(), sent.GetValue()) {
				t.Errorf("Call with 3 MiB = %v and %d bytes, want all of them", err, len(got.GetValue()))
			}
		})
	}
	calls.Wait()
}

// A request brings its client an answer, and nothing else to do.
func TestAnswersAlone(t *testing.T) {
	t.Parallel()
	r := run(t, server.Options{Services: []server.Service{echo(func(context.Context) error { return nil })}})
	c := dialRude(t, r.addr.String())
	for id := c.open(0); ; {
		frame, err := c.frames.ReadFrame()
		if err != nil {
			t.Fatalf("ReadFrame = %v, want an answer", err)
		}
		switch f := frame.(type) {
		case *http2.PingFrame:
			t.Errorf("a request is answered by the ping %q too, want none", f.Data)
		case *http2.MetaHeadersFrame:
			if f.StreamID == id && f.StreamEnded() {
				return
			}
		}
	}
}

// A connection that grew old is given up, without an error of a call.
func TestMaxConnectionAge(t *testing.T) {
	t.Parallel()
	r := run(t, server.Options{MaxConnectionAge: 50 * time.Millisecond, Services: []server.Service{echo(func(context.Context) error { return nil })}})
	c := dialRude(t, r.addr.String())
	for {
		frame, err := c.frames.ReadFrame()
		if err != nil {
			t.Fatalf("ReadFrame = %v, want GOAWAY first", err)
		}
		if f, ok := frame.(*http2.GoAwayFrame); ok {
			if f.ErrCode != http2.ErrCodeNo {
				t.Errorf("GOAWAY with %v, want NO_ERROR", f.ErrCode)
			}
			return
		}
	}
}

// Headers that are too large, or that never end, are refused on the HTTP port.
func TestHTTPLimits(t *testing.T) {
	t.Parallel()
	url, _ := serveHTTP(t, server.HTTPOptions{
		MaxHeaderSize: 1 << 10, DrainTime: time.Second,
		Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
	})
	for size, want := range map[int]int{1 << 9: http.StatusOK, 1 << 14: http.StatusRequestHeaderFieldsTooLarge} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Large", strings.Repeat("x", size))
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("GET with %d bytes of headers = %d, want %d", size, resp.StatusCode, want)
		}
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "); err != nil {
		t.Fatal(err)
	}
	conn.SetReadDeadline(time.Now().Add(20 * time.Second)) //nolint:errcheck // a socket has deadlines
	text, err := io.ReadAll(conn)
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		t.Errorf("a request that never ends is waited for 20s, got %q, want its end", text)
	}
}
