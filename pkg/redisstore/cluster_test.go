package redisstore_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/redisstore"
	"github.com/sluice-mesh/sluice/test/servers"
)

// Tags of the first, second and third primary.
const (
	tag0 = "{06S}" // slot 0
	tag1 = "{z}"   // slot 8157
	tag2 = "{x}"   // slot 16287
)

func TestTagsLieApart(t *testing.T) {
	t.Parallel()
	c := servers.Cluster(t, servers.Redis, 3, servers.Options{})
	for i, tag := range []string{tag0, tag1, tag2} {
		slot, err := strconv.Atoi(c.Primaries[0].Do(t, "CLUSTER", "KEYSLOT", "sl:"+tag+"x"))
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Owner(t, slot); got != c.Primaries[i] {
			t.Errorf("slot %d of %s is not primary %d's", slot, tag, i)
		}
		if got := redisstore.SlotOf("sl:" + tag + "x"); int(got) != slot {
			t.Errorf("slotOf(%q) = %d, want the server's %d", tag, got, slot)
		}
	}
	for _, key := range []string{"", "a", "{", "{}", "a{}b", "a{b", "a}b{c}", "{a}{b}", "a{b}c{d}", "{{a}}", strings.Repeat("x", 1000)} {
		if got := fmt.Sprint(redisstore.SlotOf(key)); got != c.Primaries[0].Do(t, "CLUSTER", "KEYSLOT", key) {
			t.Errorf("slotOf(%q) = %s, want %s", key, got, c.Primaries[0].Do(t, "CLUSTER", "KEYSLOT", key))
		}
	}
}

// tagged is one under another key.
func tagged(t *testing.T, key string) bucket.Charge {
	c := one(t)
	c.Key = key
	return c
}

// TestMoves moves a slot in steps. The store knows nothing of them.
func TestMoves(t *testing.T) {
	t.Parallel()
	for _, kind := range servers.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			c := servers.Cluster(t, kind, 3, servers.Options{})
			from, to := c.Primaries[0], c.Primaries[2]
			store := open(t, redisstore.Options{URL: c.URL(), Deadline: patience})
			a, b, other := tagged(t, tag0+"a"), tagged(t, tag0+"b"), tagged(t, tag1)
			wantLeft(t, "before", take(t, store, a, b, other), 9, 9, 9)

			c.Migrate(t, 0, from, to)
			wantLeft(t, "not moved yet", take(t, store, a, b, other), 8, 8, 8)
			wantLeft(t, "ASK: a key that is not there", take(t, store, tagged(t, tag0+"new")), 9)
			c.MoveKeys(t, 0, 1, from, to)
			err := store.Take(t.Context(), []bucket.Charge{a, b, other, tagged(t, tag0+"new")}, make([]bucket.Result, 4))
			if got := causeOf(err); got != "moved" || !strings.Contains(err.Error(), "TRYAGAIN") {
				t.Errorf("TRYAGAIN: Take(half moved) = %v with cause %q, want cause moved", err, got)
			}
			c.MoveKeys(t, 0, 10, from, to)
			wantLeft(t, "ASK: a key that has moved", take(t, store, b, other, a), 7, 7, 7)
			c.Settle(t, 0, to)
			wantLeft(t, "MOVED", take(t, store, a, other, b), 6, 6, 6)
			wantLeft(t, "after", take(t, store, other, a, b), 5, 5, 5)
			to.Do(t, "SCRIPT", "FLUSH")
			c.Primaries[1].Do(t, "SCRIPT", "FLUSH")
			wantLeft(t, "NOSCRIPT", take(t, store, other, a, b), 4, 4, 4)
		})
	}
}

func wantLeft(t *testing.T, name string, got []bucket.Result, want ...int64) {
	t.Helper()
	for i, left := range want {
		if !got[i].Allowed || got[i].Err != nil || got[i].Remaining != left {
			t.Errorf("%s: charge %d = %+v, want %d left", name, i, got[i], left)
		}
	}
}

// TestTryAgain finishes the move while a call waits for it.
func TestTryAgain(t *testing.T) {
	t.Parallel()
	c := servers.Cluster(t, servers.Redis, 3, servers.Options{})
	from, to := c.Primaries[0], c.Primaries[1]
	store := open(t, redisstore.Options{URL: c.URL(), Deadline: patience})
	a, b := tagged(t, tag0+"a"), tagged(t, tag0+"b")
	take(t, store, a, b)
	c.Migrate(t, 0, from, to)
	c.MoveKeys(t, 0, 1, from, to)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.MoveKeys(t, 0, 1, from, to)
	}()
	results := make([]bucket.Result, 2)
	for store.Take(t.Context(), []bucket.Charge{a, b}, results) != nil && t.Context().Err() == nil {
	}
	<-done
	wantLeft(t, "moved meanwhile", results, 8, 8)
}

// TestClusterDown stops a primary that has no replica, and then starts it.
func TestClusterDown(t *testing.T) {
	t.Parallel()
	for _, kind := range servers.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			c := servers.Cluster(t, kind, 3, servers.Options{})
			store := open(t, redisstore.Options{URL: c.URL(), Deadline: patience})
			here, there := tagged(t, tag0), tagged(t, tag1)
			take(t, store, here, there)
			c.Primaries[1].Kill()
			err := store.Take(t.Context(), []bucket.Charge{there}, make([]bucket.Result, 1))
			if got := causeOf(err); got != "refused" && got != "broken" && got != "clusterdown" {
				t.Errorf("Take(stopped primary) = %v with cause %q, want refused, broken or clusterdown", err, got)
			}
			c.Primaries[0].Await(t, func(info string) bool { return strings.Contains(info, "cluster_state:fail") }, "CLUSTER", "INFO")
			for name, charges := range map[string][]bucket.Charge{"one slot": {here}, "two slots": {here, tagged(t, tag2)}} {
				err = store.Take(t.Context(), charges, make([]bucket.Result, len(charges)))
				if got := causeOf(err); got != "clusterdown" {
					t.Errorf("%s: Take(cluster that is down) = %v with cause %q, want clusterdown", name, err, got)
				}
			}
			c.Primaries[1].Restart(t)
			c.Await(t)
			wantLeft(t, "up again", take(t, store, here), 8)
		})
	}
}

// TestClusterFailover kills a primary that has a replica.
func TestClusterFailover(t *testing.T) {
	t.Parallel()
	for _, kind := range servers.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			c := servers.Cluster(t, kind, 3, servers.Options{Replicas: 1})
			store := open(t, redisstore.Options{URL: c.URL(), Deadline: patience})
			take(t, store, tagged(t, tag0), tagged(t, tag1))
			for range 5 { // connections that will break
				_ = store.Ping(t.Context())
			}
			c.Primaries[0].Kill()
			c.Replicas[0].Await(t, func(role string) bool { return strings.HasPrefix(role, "master") }, "ROLE")
			c.Primaries[0] = c.Replicas[0]
			c.Await(t)
			began := time.Now()
			results := make([]bucket.Result, 2)
			charges := []bucket.Charge{tagged(t, tag0+"new"), tagged(t, tag1)}
			tries := 1
			for store.Take(t.Context(), charges, results) != nil && tries < 100 {
				tries++ // a broken connection proves nothing
			}
			t.Logf("back after %v and %d tries", time.Since(began), tries)
			if !results[0].Allowed || results[0].Remaining != 9 {
				t.Errorf("Take(after a failover) = %+v, want 9 left", results[0])
			}
		})
	}
}

// TestGivesBackAfterFailure has one of two slots fail: what was charged in the
// other is given back.
func TestGivesBackAfterFailure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want   string
		broken func(t *testing.T, s *servers.Server)
	}{
		{"full", func(t *testing.T, s *servers.Server) { s.Do(t, "CONFIG", "SET", "maxmemory", "1") }},
		{"busy", func(t *testing.T, s *servers.Server) {
			s.Do(t, "CONFIG", "SET", "busy-reply-threshold", "1")
			inAScript(t, s)
		}},
		{"replicas", func(t *testing.T, s *servers.Server) { s.Do(t, "CONFIG", "SET", "min-replicas-to-write", "1") }},
		{"refused", func(_ *testing.T, s *servers.Server) { s.Kill() }},
	} {
		t.Run(c.want, func(t *testing.T) {
			t.Parallel()
			cluster := servers.Cluster(t, servers.Redis, 3, servers.Options{Args: []string{"--cluster-require-full-coverage", "no"}})
			store := open(t, redisstore.Options{URL: cluster.URL(), Deadline: patience})
			well, ill := tagged(t, tag0), tagged(t, tag1)
			take(t, store, well) // looks for who has what
			c.broken(t, cluster.Primaries[1])
			err := store.Take(t.Context(), []bucket.Charge{well, ill}, make([]bucket.Result, 2))
			if got := causeOf(err); got != c.want {
				t.Errorf("Take = %v with cause %q, want %q", err, got, c.want)
			}
			wantLeft(t, "given back", take(t, store, well), 8)
		})
	}
}

// TestGivesBackAfterTimeout has one of two slots not answer: when its caller
// has gone, what was charged in the other still is given back.
func TestGivesBackAfterTimeout(t *testing.T) {
	t.Parallel()
	c := servers.Cluster(t, servers.Redis, 3, servers.Options{})
	store := open(t, redisstore.Options{URL: c.URL(), Deadline: patience})
	well, ill := tagged(t, tag0), tagged(t, tag1)
	take(t, store, well, ill)
	c.Primaries[1].Pause(t)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	err := store.Take(ctx, []bucket.Charge{well, ill}, make([]bucket.Result, 2))
	if got := causeOf(err); got != "timeout" {
		t.Errorf("Take(paused server) = %v with cause %q, want timeout", err, got)
	}
	c.Primaries[1].Resume(t)
	look := well
	look.Cost = 0
	for take(t, store, look)[0].Remaining != 9 {
		if t.Context().Err() != nil {
			break
		}
	}
	// Nobody can know whether the other was charged. It is not sent again.
	look.Key = ill.Key
	if got := take(t, store, look)[0].Remaining; got != 8 && got != 9 {
		t.Errorf("Remaining after a charge of 1 of 9 that timed out = %d, want 8 or 9", got)
	}
}
