package redisstore_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-mesh/sluice/pkg/limiter/storetest"
	"github.com/sluice-mesh/sluice/pkg/redisstore"
	"github.com/sluice-mesh/sluice/test/servers"
)

// patience is a deadline that a busy machine keeps.
const patience = 20 * time.Second

func TestStore(t *testing.T) {
	t.Parallel()
	for _, kind := range servers.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			server := servers.Start(t, kind, servers.Options{Socket: true})
			storetest.Run(t, func(t *testing.T) storetest.Harness { return harness(t, server) })
		})
	}
}

// TestDifferential makes about 100,000 charges on each kind of server, in
// several runs at a time.
func TestDifferential(t *testing.T) {
	t.Parallel()
	for _, kind := range servers.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			server := servers.Start(t, kind, servers.Options{Socket: true})
			for seed := range uint64(5) {
				t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
					t.Parallel()
					storetest.Differential(t, harness(t, server), 10_000, seed)
				})
			}
		})
	}
}

// harness opens a store with keys of its own on server and a clock that stands
// still. When the test is over, it audits the keys.
func harness(t *testing.T, server *servers.Server) storetest.Harness {
	t.Helper()
	admin := client(t, server)
	prefix := fmt.Sprintf("t%d:", harnesses.Add(1))
	var now atomic.Int64
	store := open(t, redisstore.Options{
		URL: server.URL(), KeyPrefix: prefix, Deadline: patience,
		Now: func() time.Time { return time.UnixMicro(now.Load()) },
	})
	t.Cleanup(func() { audit(t, admin, prefix, 60*time.Second) })
	return storetest.Harness{Store: store, SetNow: func(at time.Time) { now.Store(at.UnixMicro()) }}
}

var harnesses atomic.Int64

func open(t *testing.T, o redisstore.Options) *redisstore.Store {
	t.Helper()
	store, err := redisstore.New(o)
	if err != nil {
		t.Fatalf("New(%+v) = %v, want no error", o, err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func client(t *testing.T, server *servers.Server) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(server.URL())
	if err != nil {
		t.Fatalf("ParseURL(%q) = %v", server.URL(), err)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}
