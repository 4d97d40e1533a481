package servers

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
)

// A ClusterOf servers. They end with their test.
type ClusterOf struct {
	// Primaries share the slots: as many each as the others, in their order.
	Primaries []*Server
	// Replicas are of the first primary, of the second, and so on, and then
	// of the first again.
	Replicas []*Server
}

// Cluster starts a cluster of n primaries and, with Options.Replicas, replicas,
// and waits until all of them say that it is well. A node that is away for a
// second is taken for dead.
func Cluster(t testing.TB, k Kind, n int, o Options) *ClusterOf {
	t.Helper()
	c := &ClusterOf{}
	for i := range n * (1 + o.Replicas) {
		s := node(t, k, o)
		s.Do(t, "CLUSTER", "SET-CONFIG-EPOCH", fmt.Sprint(i+1))
		if i < n {
			c.Primaries = append(c.Primaries, s)
			s.Do(t, "CLUSTER", "ADDSLOTSRANGE", fmt.Sprint(i*slots/n), fmt.Sprint((i+1)*slots/n-1))
		} else {
			c.Replicas = append(c.Replicas, s)
		}
	}
	c.meet(t)
	for i, s := range c.Replicas {
		s.Do(t, "CLUSTER", "REPLICATE", c.Primaries[i%n].ID(t))
	}
	for i, s := range c.Replicas {
		s.Await(t, linked, "INFO", "replication")
		c.Primaries[i%n].Await(t, linked, "INFO", "replication")
	}
	c.Await(t)
	return c
}

const slots = 16384

// linked says that a replica has caught up, or that a primary has one that has.
func linked(info string) bool {
	return strings.Contains(info, "master_link_status:up") || strings.Contains(info, "state=online")
}

func node(t testing.TB, k Kind, o Options) *Server {
	t.Helper()
	if o.Password != "" {
		o.Args = append(slices.Clone(o.Args), "--masterauth", o.Password)
	}
	if o.Certificates != nil {
		o.Args = append(slices.Clone(o.Args), "--tls-cluster", "yes", "--tls-replication", "yes")
	}
	return startFree(t, k, o, func(s *Server) []string {
		_, s.bus, _ = net.SplitHostPort(freeAddr(t))
		return []string{"--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-port", s.bus, "--repl-diskless-sync-delay", "0"}
	})
}

// Add adds a primary without slots, and waits until all know it.
func (c *ClusterOf) Add(t testing.TB) *Server {
	t.Helper()
	first := c.Primaries[0]
	s := node(t, first.kind, Options{Password: first.options.Password, Certificates: first.options.Certificates})
	c.Primaries = append(c.Primaries, s)
	c.meet(t)
	c.Await(t)
	return s
}

// meet has all nodes know each other.
func (c *ClusterOf) meet(t testing.TB) {
	t.Helper()
	nodes := c.nodes()
	for _, s := range nodes[1:] {
		host, port, _ := net.SplitHostPort(s.Addr)
		nodes[0].Do(t, "CLUSTER", "MEET", host, port, s.bus)
	}
	for _, s := range nodes {
		s.Await(t, func(text string) bool {
			return strings.Count(text, "\n") == len(nodes) && !strings.Contains(text, "handshake")
		}, "CLUSTER", "NODES")
	}
}

func (c *ClusterOf) nodes() []*Server { return append(slices.Clone(c.Primaries), c.Replicas...) }

// Await waits until all nodes that run say that the cluster is well.
func (c *ClusterOf) Await(t testing.TB) {
	t.Helper()
	for _, s := range c.nodes() {
		if s.cmd != nil {
			s.Await(t, func(info string) bool { return strings.Contains(info, "cluster_state:ok") }, "CLUSTER", "INFO")
		}
	}
}

// URL returns where the cluster is, as redis+cluster:// with its password.
func (c *ClusterOf) URL() string {
	addrs := make([]string, len(c.Primaries))
	for i, s := range c.Primaries {
		addrs[i] = s.Addr
	}
	scheme, user, _ := c.Primaries[0].parts()
	return scheme + "+cluster://" + user + strings.Join(addrs, ",")
}

// ID returns the name that s has in its cluster.
func (s *Server) ID(t testing.TB) string {
	t.Helper()
	return s.Do(t, "CLUSTER", "MYID")
}

// Owner returns the primary that says that it has slot.
func (c *ClusterOf) Owner(t testing.TB, slot int) *Server {
	t.Helper()
	for _, s := range c.Primaries {
		if fields := strings.Fields(myself(s.Do(t, "CLUSTER", "NODES"))); owns(fields, slot) {
			return s
		}
	}
	t.Fatalf("no primary has slot %d", slot)
	return nil
}

// myself returns the line of CLUSTER NODES that is about who answers.
func myself(nodes string) string {
	for line := range strings.Lines(nodes) {
		if strings.Contains(line, "myself") {
			return line
		}
	}
	return ""
}

func owns(fields []string, slot int) bool {
	for _, f := range fields[min(8, len(fields)):] {
		var from, to int
		if n, _ := fmt.Sscanf(f, "%d-%d", &from, &to); n == 1 {
			to = from
		} else if n != 2 {
			continue
		}
		if from <= slot && slot <= to {
			return true
		}
	}
	return false
}

// Migrate begins to move slot from one node to another: what is there is still
// asked of the first, what is not of the second.
func (c *ClusterOf) Migrate(t testing.TB, slot int, from, to *Server) {
	t.Helper()
	to.Do(t, "CLUSTER", "SETSLOT", fmt.Sprint(slot), "IMPORTING", from.ID(t))
	from.Do(t, "CLUSTER", "SETSLOT", fmt.Sprint(slot), "MIGRATING", to.ID(t))
}

// MoveKeys moves at most n keys of slot, which is migrated, and returns how
// many there were left.
func (c *ClusterOf) MoveKeys(t testing.TB, slot, n int, from, to *Server) int {
	t.Helper()
	keys := strings.Fields(from.Do(t, "CLUSTER", "GETKEYSINSLOT", fmt.Sprint(slot), fmt.Sprint(n)))
	if len(keys) > 0 {
		host, port, _ := net.SplitHostPort(to.Addr)
		args := []string{"MIGRATE", host, port, "", "0", "5000", "KEYS"}
		if p := to.options.Password; p != "" {
			args = slices.Insert(args, 6, "AUTH", p)
		}
		from.Do(t, append(args, keys...)...)
	}
	var left int
	_, _ = fmt.Sscan(from.Do(t, "CLUSTER", "COUNTKEYSINSLOT", fmt.Sprint(slot)), &left)
	return left
}

// Settle ends a migration: slot is to's. It waits until all primaries that run
// say so.
func (c *ClusterOf) Settle(t testing.TB, slot int, to *Server) {
	t.Helper()
	id := to.ID(t)
	to.Do(t, "CLUSTER", "SETSLOT", fmt.Sprint(slot), "NODE", id)
	for _, s := range c.Primaries {
		if s.cmd == nil {
			continue
		}
		// Until the news of it are everywhere, older ones may undo it.
		s.Await(t, func(nodes string) bool {
			if ownedBy(nodes, id, slot) {
				return true
			}
			_, _ = s.Try("CLUSTER", "SETSLOT", fmt.Sprint(slot), "NODE", id)
			return false
		}, "CLUSTER", "NODES")
	}
}

// ownedBy says that in CLUSTER NODES slot is that of the node called id.
func ownedBy(nodes, id string, slot int) bool {
	for line := range strings.Lines(nodes) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] == id {
			return owns(fields, slot)
		}
	}
	return false
}
