package bench_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"

	"github.com/sluice-mesh/sluice/internal/bench"
)

// A caller sends requests and nothing else, as Envoy does. A ping with each of
// them would have the server write twice, and be late for whoever waits.
func TestNoPings(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tap := &tap{Listener: l}
	// The server is not to ping either: it would be answered.
	s := grpc.NewServer(grpc.StaticStreamWindowSize(1<<16), grpc.StaticConnWindowSize(1<<16))
	rlsv3.RegisterRateLimitServiceServer(s, &recorder{})
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(tap) }()
	request := bench.RLS{Domain: "d", Descriptors: [][]bench.Entry{{{Key: "k", Value: "v"}}}}
	ran(t, bench.Target{Addr: l.Addr().String()}, request, bench.Options{Requests: 50, Timeout: time.Minute})
	s.Stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	frames := tap.frames(t)
	if frames[http2.FrameHeaders] != 50 || frames[http2.FramePing] != 0 {
		t.Errorf("50 requests are sent as %v, want a HEADERS each, and no PING", frames)
	}
}

// A tap keeps what its one connection reads.
type tap struct {
	net.Listener
	mu   sync.Mutex
	read bytes.Buffer
}

type tapped struct {
	net.Conn
	tap *tap
}

func (l *tap) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return tapped{conn, l}, err
}

func (c tapped) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	c.tap.read.Write(p[:n])
	return n, err
}

// frames counts what was read, by type.
func (l *tap) frames(t *testing.T) map[http2.FrameType]int {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.read.Next(len(http2.ClientPreface))
	count, framer := map[http2.FrameType]int{}, http2.NewFramer(nil, &l.read)
	for {
		frame, err := framer.ReadFrame()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return count
		}
		if err != nil {
			t.Fatal(err)
		}
		count[frame.Header().Type]++
	}
}
