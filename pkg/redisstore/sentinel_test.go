package redisstore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/redisstore"
	"github.com/sluice-mesh/sluice/test/servers"
)

// TestFailover has sentinels replace the primary, in each of the ways in which
// one may be lost. A call that fails is made again; the one that is answered is
// to be of the new primary.
func TestFailover(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		kind servers.Kind
		lose func(t *testing.T, w *servers.Watched)
	}{
		{"killed", servers.Redis, func(_ *testing.T, w *servers.Watched) { w.Primary.Kill() }},
		{"hangs", servers.Valkey, func(t *testing.T, w *servers.Watched) { w.Primary.Pause(t) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := servers.Sentinel(t, c.kind, servers.Options{})
			store := open(t, redisstore.Options{URL: w.URL(), Deadline: 300 * time.Millisecond})
			for store.Take(t.Context(), []bucket.Charge{one(t)}, make([]bucket.Result, 1)) != nil && t.Context().Err() == nil {
			}
			w.Replica.Await(t, func(n string) bool { return n == "1" }, "EXISTS", "sl:one")
			c.lose(t, w)
			w.AwaitPrimary(t, w.Replica)
			began, tries := time.Now(), 1
			results := make([]bucket.Result, 1)
			for err := error(nil); ; tries++ {
				if err = store.Take(t.Context(), []bucket.Charge{tagged(t, "new")}, results); err == nil {
					break
				}
				if time.Since(began) > 20*time.Second {
					t.Fatalf("%s: Take(20 s after a failover) = %v", c.kind.Name, err)
				}
			}
			t.Logf("%s: back after %v and %d tries", c.kind.Name, time.Since(began), tries)
			if got := w.Replica.Do(t, "EXISTS", "sl:new"); got != "1" || results[0].Remaining != 9 {
				t.Errorf("%s: Take(after a failover) = %+v, want 9 left on the new primary", c.kind.Name, results[0])
			}
		})
	}
}

// TestDemoted turns the primary into a replica under a store that has
// connections to it.
func TestDemoted(t *testing.T) {
	t.Parallel()
	w := servers.Sentinel(t, servers.Redis, servers.Options{})
	store := open(t, redisstore.Options{URL: w.URL(), Deadline: patience})
	take(t, store, one(t))
	w.Sentinels[0].Do(t, "SENTINEL", "FAILOVER", servers.PrimaryName)
	w.AwaitPrimary(t, w.Replica)
	host, port, _ := strings.Cut(w.Replica.Addr, ":")
	w.Primary.Do(t, "REPLICAOF", host, port) // as the sentinels do in a while
	results := make([]bucket.Result, 1)
	err := store.Take(t.Context(), []bucket.Charge{tagged(t, "new")}, results)
	for causeOf(err) == "readonly" { // the other sentinels have not heard of it yet
		err = store.Take(t.Context(), []bucket.Charge{tagged(t, "new")}, results)
	}
	if err != nil || results[0].Remaining != 9 {
		t.Errorf("Take(primary that has become a replica) = %+v, %v, want 9 left on the other", results[0], err)
	}
}

// TestSentinelsLost goes on with the primary that is known, and with one
// sentinel of three.
func TestSentinelsLost(t *testing.T) {
	t.Parallel()
	w := servers.Sentinel(t, servers.Redis, servers.Options{})
	w.Sentinels[0].Pause(t)
	w.Sentinels[1].Kill()
	store := open(t, redisstore.Options{URL: w.URL(), Deadline: patience})
	take(t, store, one(t))
	w.Sentinels[2].Kill()
	if got := take(t, store, one(t))[0]; got.Remaining != 8 {
		t.Errorf("Take(without sentinels) = %+v, want 8 left", got)
	}
	stranger := open(t, redisstore.Options{URL: strings.Replace(w.URL(), "/primary", "/other", 1), Deadline: patience})
	w.Sentinels[0].Resume(t)
	err := stranger.Take(t.Context(), []bucket.Charge{one(t)}, make([]bucket.Result, 1))
	if err == nil || !strings.Contains(err.Error(), "no sentinel knows the primary") {
		t.Errorf("Take(a primary of another name) = %v, want that no sentinel knows it", err)
	}
}

// TestLoading makes a server the replica of another that has much: it loads
// that for a while.
func TestLoading(t *testing.T) {
	t.Parallel()
	for _, kind := range servers.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			full := servers.Start(t, kind, servers.Options{Args: []string{"--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0"}})
			full.Do(t, "DEBUG", "POPULATE", "20000")
			// It answers while it loads, each 1024 bytes.
			s := servers.Start(t, kind, servers.Options{Args: []string{"--key-load-delay", "500", "--loading-process-events-interval-bytes", "1024"}})
			store := open(t, redisstore.Options{URL: s.URL(), Deadline: patience})
			host, port, _ := strings.Cut(full.Addr, ":")
			s.Do(t, "REPLICAOF", host, port)
			for end := time.Now().Add(20 * time.Second); ; {
				err := store.Take(t.Context(), []bucket.Charge{one(t)}, make([]bucket.Result, 1))
				if causeOf(err) == "loading" {
					return
				}
				if got := causeOf(err); got != "readonly" || time.Now().After(end) {
					t.Fatalf("Take(server that is about to load) = %v with cause %q, want readonly or loading", err, got)
				}
			}
		})
	}
}

// TestTakeLeavesTime has a caller with less time than the store: it is answered
// before its own time is up.
func TestTakeLeavesTime(t *testing.T) {
	t.Parallel()
	alone := servers.Start(t, servers.Redis, servers.Options{})
	cluster := servers.Cluster(t, servers.Redis, 3, servers.Options{})
	stores := map[string]*redisstore.Store{"alone": nil, "cluster": nil}
	for name, url := range map[string]string{"alone": alone.URL(), "cluster": cluster.URL()} {
		stores[name] = open(t, redisstore.Options{URL: url, Deadline: time.Hour})
		take(t, stores[name], one(t))
	}
	for _, s := range append(cluster.Primaries, alone) {
		s.Pause(t)
	}
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
			defer stop()
			err := store.Take(ctx, []bucket.Charge{one(t)}, make([]bucket.Result, 1))
			if got := causeOf(err); got != "timeout" || ctx.Err() != nil {
				t.Errorf("Take(paused server) = %v with cause %q, its caller's context has %v; want a timeout before that ends", err, got, ctx.Err())
			}
		})
	}
}
