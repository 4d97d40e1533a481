package server_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/peer"

	"github.com/sluice-mesh/sluice/internal/server"
)

// A client that keeps its connection would never find new replicas. One whose
// time is up is asked to open another, and no call fails for it.
func TestB100ConnectionsAge(t *testing.T) {
	t.Parallel()
	var seen peers
	r := run(t, server.Options{
		Services:         []server.Service{echo(func(ctx context.Context) error { return seen.add(ctx) })},
		MaxConnectionAge: 100 * time.Millisecond,
	})
	for end := time.Now().Add(20 * time.Second); seen.count() < 3; {
		if err := r.call(t.Context()); err != nil {
			t.Fatalf("Call = %v, want an answer whatever the connection's age", err)
		}
		if time.Now().After(end) {
			t.Fatalf("calls came over %d connections, want a new one each 100ms", seen.count())
		}
	}
}

// peers are the connections that calls came over.
type peers struct {
	mu    sync.Mutex
	addrs map[string]bool
}

func (p *peers) add(ctx context.Context) error {
	from, _ := peer.FromContext(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.addrs == nil {
		p.addrs = map[string]bool{}
	}
	p.addrs[from.Addr.String()] = true
	return nil
}

func (p *peers) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.addrs)
}
