package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/redisstore"
	"github.com/sluice-mesh/sluice/test/servers"
)

// TestLead has one caller at a time carry itself out: each call is a round trip
// of its own. While the server hangs, that caller is answered by its deadline,
// and those who come meanwhile by others.
func TestLead(t *testing.T) {
	t.Parallel()
	for _, kind := range servers.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			server := servers.Start(t, kind, servers.Options{})
			store := open(t, redisstore.Options{URL: server.URL(), Deadline: patience})
			store.Lead()
			take(t, store, one(t)) // the server knows the script now
			before := scripts(t, server)
			for range 50 {
				take(t, store, one(t))
			}
			if got := scripts(t, server) - before; got != 50 {
				t.Errorf("50 calls, one after the other, ran %d scripts, want 50", got)
			}
			server.Pause(t)
			g := &gathering{Store: store, server: server}
			soon, stop := context.WithTimeout(t.Context(), time.Second)
			defer stop()
			leader := g.send(soon, tagged(t, "k"))
			g.until(t, func(waiting, busy int) bool { return waiting == 0 && busy == 1 })
			var others []*outcome
			for range 9 {
				others = append(others, g.send(t.Context(), tagged(t, "k")))
			}
			<-leader.done
			if got := causeOf(leader.err); got != "timeout" || soon.Err() != nil {
				t.Errorf("Take(server that hangs) = %v with cause %q, its context has %v; want timeout before that ends", leader.err, got, soon.Err())
			}
			g.goes(t)
			for _, o := range others {
				if o.err != nil || !o.results[0].Allowed {
					t.Errorf("Take(server that hung) = %+v, %v, want room", o.results[0], o.err)
				}
			}
			g.until(t, func(waiting, busy int) bool { return waiting == 0 && busy == 0 })
		})
	}
}

// TestLeadLeaves has a caller carry out a batch that leaves out another, who has
// more time and came before it went: should the first be late, a lane takes the
// other, though nobody comes any more.
func TestLeadLeaves(t *testing.T) {
	t.Parallel()
	left := redisstore.Left()
	select {
	case <-left:
	case <-time.After(patience):
		t.Errorf("no lane is woken in %v for a request that a batch left behind, want one once the batch is late", patience)
	}
}
