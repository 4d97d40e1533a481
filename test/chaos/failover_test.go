package chaos_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/test/servers"
	"github.com/sluice-mesh/sluice/test/stack"
)

const spenders = 9

// spendOn starts extauthz on the Redis at url, and callers.
func spendOn(t *testing.T, url string, deadline time.Duration) (*stack.Extauthz, *spending) {
	t.Helper()
	e := serve(t, "--policy", policyFile(t), "--redis-url", url, "--store-deadline", deadline.String())
	s := startSpending(t, e.GRPC, spenders)
	s.await(t, purse/4)
	return e, s
}

// TestSentinelFailover kills the primary under load, and has sentinels make
// another of its replica.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	w := servers.Sentinel(t, servers.Redis, servers.Options{})
	_, s := spendOn(t, w.URL(), *deadline)
	killed := time.Now()
	w.Primary.Kill()
	up := awaitPrimary(t, w.Replica)
	s.reportFailover(t, "Sentinel, the primary killed", killed, up)
}

// TestClusterFailover kills one primary of three under load.
func TestClusterFailover(t *testing.T) {
	t.Parallel()
	c := servers.Cluster(t, servers.Redis, 3, servers.Options{Replicas: 1})
	_, s := spendOn(t, c.URL(), *deadline)
	killed := time.Now()
	c.Primaries[0].Kill()
	up := awaitPrimary(t, c.Replicas[0])
	s.reportFailover(t, "Cluster, one primary of three killed", killed, up)
}

// awaitPrimary waits until a replica says that it is a primary now.
func awaitPrimary(t *testing.T, s *servers.Server) time.Time {
	t.Helper()
	s.Await(t, func(role string) bool { return strings.HasPrefix(role, "master") }, "ROLE")
	return time.Now()
}

// reportFailover waits until all have spent what there is, and tells.
func (s *spending) reportFailover(t *testing.T, name string, killed, up time.Time) {
	t.Helper()
	served := s.served(t, up)
	forgotten, failed := s.finish(t, killed)
	if failed == 0 {
		t.Error("no request failed for want of the store, want some: nobody's bucket was where it was")
	}
	row := fmt.Sprintf("| %s | %s | %s | %d | %d of %d |", name, ms(up.Sub(killed)), ms(max(served.Sub(up), 0)), failed, forgotten, spenders*purse)
	t.Log(row)
	failovers.add(name, row)
}

// TestReshard moves the slots of all buckets under load, to a node that is
// added for that. Nobody notices.
func TestReshard(t *testing.T) {
	t.Parallel()
	c := servers.Cluster(t, servers.Redis, 3, servers.Options{})
	_, s := spendOn(t, c.URL(), patience)
	added, moved := c.Add(t), 0
	for _, p := range c.Primaries[:3] {
		for _, key := range strings.Fields(p.Do(t, "KEYS", "*:purse*")) {
			var slot int
			if _, err := fmt.Sscan(p.Do(t, "CLUSTER", "KEYSLOT", key), &slot); err != nil {
				t.Fatal(err)
			}
			c.Migrate(t, slot, p, added)
			s.pause()
			c.MoveKeys(t, slot, 100, p, added)
			s.pause()
			c.Settle(t, slot, added)
			moved++
		}
	}
	if moved != spenders {
		t.Errorf("the slots of %d buckets were moved, want %d", moved, spenders)
	}
	if forgotten, failed := s.finish(t, time.Time{}); forgotten != 0 || failed != 0 {
		t.Errorf("%d tokens are forgotten and %d requests failed, want none", forgotten, failed)
	}
	for i, list := range s.answers() {
		if got := admitted(list); got != purse {
			t.Errorf("%d requests of caller %d are admitted, want %d", got, i, purse)
		}
	}
}

// pause lets callers come between two steps.
func (s *spending) pause() { time.Sleep(5 * rest) }
