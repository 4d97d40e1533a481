package servers_test

import (
	"strings"
	"testing"

	"github.com/sluice-mesh/sluice/test/servers"
)

func TestCluster(t *testing.T) {
	t.Parallel()
	for _, kind := range servers.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			c := servers.Cluster(t, kind, 3, servers.Options{Password: "secret", Replicas: 1})
			if url := c.URL(); !strings.HasPrefix(url, "redis+cluster://:secret@127.0.0.1:") || strings.Count(url, ",") != 2 {
				t.Errorf("URL() = %q, want three nodes of a cluster", url)
			}
			for slot, i := range map[int]int{0: 0, 5461: 1, 16383: 2} {
				if got := c.Owner(t, slot); got != c.Primaries[i] {
					t.Errorf("Owner(%d) = %s, want %s", slot, got.Addr, c.Primaries[i].Addr)
				}
			}
			from, to := c.Primaries[0], c.Primaries[2]
			from.Do(t, "SET", "{06S}a", "1") // its slot is 0
			from.Do(t, "SET", "{06S}b", "2")
			c.Migrate(t, 0, from, to)
			if left := c.MoveKeys(t, 0, 1, from, to); left != 1 {
				t.Errorf("MoveKeys(1 of 2) leaves %d, want 1", left)
			}
			if _, err := from.Try("MGET", "{06S}a", "{06S}b"); err == nil || !strings.HasPrefix(err.Error(), "TRYAGAIN") {
				t.Errorf("MGET of a slot half moved = %v, want TRYAGAIN", err)
			}
			c.MoveKeys(t, 0, 10, from, to)
			c.Settle(t, 0, to)
			if got := to.Do(t, "MGET", "{06S}a", "{06S}b"); got != "1\n2" {
				t.Errorf("MGET of a slot that has moved = %q, want 1 and 2", got)
			}
			added := c.Add(t)
			c.Migrate(t, 0, to, added)
			c.MoveKeys(t, 0, 10, to, added)
			c.Settle(t, 0, added)
			if got := added.Do(t, "GET", "{06S}a"); got != "1" {
				t.Errorf("GET of a slot that moved to a new node = %q, want 1", got)
			}
			c.Primaries[1].Kill()
			c.Replicas[1].Await(t, func(role string) bool { return strings.HasPrefix(role, "master") }, "ROLE")
		})
	}
}

func TestSentinel(t *testing.T) {
	t.Parallel()
	for _, kind := range servers.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			w := servers.Sentinel(t, kind, servers.Options{Password: "secret"})
			if url := w.URL(); !strings.HasPrefix(url, "redis+sentinel://:secret@127.0.0.1:") || !strings.HasSuffix(url, "/primary") {
				t.Errorf("URL() = %q, want sentinels and the name primary", url)
			}
			w.Primary.Kill()
			w.AwaitPrimary(t, w.Replica)
		})
	}
}

// The Valkey of .tools has no TLS.
func TestCertificates(t *testing.T) {
	t.Parallel()
	s := servers.Start(t, servers.Redis, servers.Options{Certificates: servers.NewCertificates(t)})
	if got := s.Do(t, "PING"); got != "PONG" || !strings.HasPrefix(s.URL(), "rediss://") {
		t.Errorf("PING of %s = %q, want PONG of rediss://", s.URL(), got)
	}
}
