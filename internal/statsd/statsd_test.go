package statsd_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/internal/statsd"
)

func Example() {
	s, err := statsd.New(statsd.Options{Addr: "127.0.0.1:8125", Counters: func() map[string]uint64 { return map[string]uint64{"requests": 7} }})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // it is told to end at once
	s.Run(ctx)
	// Output:
}

// lines accepts one connection of l and returns its first n lines, sorted.
func lines(t *testing.T, l net.Listener, n int) []string {
	t.Helper()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for in := bufio.NewScanner(conn); len(got) < n && in.Scan(); {
		got = append(got, in.Text())
	}
	slices.Sort(got)
	return got
}

func TestSender(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var n atomic.Uint64
	n.Store(5)
	s, err := statsd.New(statsd.Options{
		Addr: l.Addr().String(), Every: 10 * time.Millisecond, Tags: []string{"env:test"},
		Counters: func() map[string]uint64 { return map[string]uint64{"a.total": n.Load(), "a.none": 0} },
		Gauges:   func() map[string]int64 { return map[string]int64{"a.open": 3} },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	s.Took("a.time", 1500*time.Microsecond)
	if diff := cmp.Diff([]string{"a.time:1.500000|ms|#env:test", "a.total:5|c|#env:test"}, lines(t, l, 3)[1:]); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	// The connection is closed: what was sent to it since is lost, and another is made.
	for added := uint64(0); ; added++ {
		n.Add(1)
		if err := l.(*net.TCPListener).SetDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		conn, err := l.Accept()
		if err != nil && added < 500 {
			continue
		}
		if err != nil {
			t.Fatal("no other connection is made")
		}
		conn.Close()
		break
	}
	cancel()
	<-done
}

func TestNewWants(t *testing.T) {
	t.Parallel()
	if _, err := statsd.New(statsd.Options{}); err == nil || !strings.Contains(err.Error(), "Counters") {
		t.Errorf("New() = %v, want an error about Counters", err)
	}
}
