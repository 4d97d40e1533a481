package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"
)

// An Upstream is the service behind Envoy: it answers 200 to everything, and
// counts.
type Upstream struct {
	Port     int
	server   http.Server
	requests atomic.Int64
	unasked  atomic.Int64
}

// StartUpstream starts one on port first, or on the next one above that is
// free. With 0 it takes any.
func StartUpstream(first int) (*Upstream, error) {
	for n := first; n < first+tries; n++ {
		l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", n))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("start upstream: %w", err)
		}
		u := &Upstream{Port: l.Addr().(*net.TCPAddr).Port}
		u.server = http.Server{Handler: u, ReadHeaderTimeout: time.Minute}
		go func() { _ = u.server.Serve(l) }()
		return u, nil
	}
	return nil, fmt.Errorf("start upstream: no port is free from %d on", first)
}

// ServeHTTP answers a request.
func (u *Upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.requests.Add(1)
	if r.Header.Get("X-Envoy-Auth-Failure-Mode-Allowed") != "" {
		u.unasked.Add(1)
	}
	w.Header().Set("Content-Type", "text/plain")
	if cost := r.Header.Get("X-Cost"); cost != "" {
		w.Header().Set("X-Cost", cost) // a service that knows afterwards what it took
	}
	fmt.Fprintf(w, "upstream: %s %s\n", r.Method, r.URL.Path)
}

// Requests says how many requests there were.
func (u *Upstream) Requests() int64 { return u.requests.Load() }

// Unasked says how many of them Envoy let through because its question was not
// answered.
func (u *Upstream) Unasked() int64 { return u.unasked.Load() }

// Stop ends it, once the requests under way are answered or ctx ends.
func (u *Upstream) Stop(ctx context.Context) error { return u.server.Shutdown(ctx) }
