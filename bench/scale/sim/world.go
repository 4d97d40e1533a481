package sim

import (
	"math/rand/v2"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/lease"
)

// A world is all that a run changes.
type world struct {
	events
	s        Scenario
	chance   *rand.Rand // of the network
	tenants  *tenants
	envoys   []envoy
	replicas []replica
	nodes    []node
	buckets  []bucket.Bucket // of each tenant, wherever it is kept
	requests pool[request]
	batches  pool[batch]
	tally    *tally
	seen     stamps
}

// A request is under way from when it began to when it is answered.
type request struct {
	key, replica int32
	began        int64
	asked        int64 // when the store was
	until        int64 // so long it is waited for
	allowed      bool
	retry        time.Duration // of a denial
	lease        *bucket.Lease // what it asks for beside, nil for nothing
	own          bool          // nobody waits for it: it hands tokens back
}

func newWorld(s Scenario) (*world, error) {
	t, err := newTenants(s)
	if err != nil {
		return nil, err
	}
	w := &world{
		s: s, chance: rand.New(rand.NewPCG(s.Seed, 1<<32)), tenants: t, envoys: newEnvoys(s),
		replicas: make([]replica, s.Replicas), nodes: make([]node, s.Nodes), buckets: make([]bucket.Bucket, s.Tenants.Count),
		tally: newTally(s, t), seen: newStamps(s.Tenants.Count),
	}
	for i := range w.replicas {
		w.replicas[i] = replica{cores: make([]int64, s.Cores), denials: map[int32]int64{}, held: map[int32]*lease.Holder{}, queues: make([]queue, s.Nodes)}
		for j := range w.replicas[i].queues {
			w.replicas[i].queues[j] = queue{replica: int32(i), node: int32(j)}
		}
	}
	if s.Death.At > 0 {
		w.plan(int64(s.Death.At), (*world).die, int32(s.Death.Replica), 0)
	}
	w.begin()
	return w, nil
}

// runUntil has happen what does until then.
func (w *world) runUntil(until int64) {
	for {
		e, ok := w.next(until)
		if !ok {
			return
		}
		e.do(w, e.about, e.more)
	}
}

// epoch is when a run begins for pkg/bucket: any moment will do.
var epoch = time.Unix(1_700_000_000, 0)

// micros is the clock of the buckets.
func (w *world) micros() int64 { return w.now / 1000 }

func (w *world) clock() time.Time { return epoch.Add(time.Duration(w.now)) }

// counts says that a moment is neither of the warm-up nor after the end.
func (s *Scenario) counts(at int64) bool { return at >= int64(s.WarmUp) && at < int64(s.Time) }

// within is how much of the time from a to b counts.
func (s *Scenario) within(a, b int64) int64 {
	return max(min(b, int64(s.Time))-max(a, int64(s.WarmUp)), 0)
}
