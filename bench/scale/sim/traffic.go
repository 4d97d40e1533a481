package sim

import (
	"math/rand/v2"
	"time"
)

// An envoy asks. It has a stream of chance of its own, so that what is asked is
// the same in every run of a seed, whatever becomes of it.
type envoy struct {
	chance *rand.Rand
	keys   *rand.Zipf
	gap    float64 // mean ns between two requests, while it asks
	burst  float64 // mean ns for which it does; 0 is always
	until  int64   // when the burst is over
	turn   int     // the replica that is next
}

func newEnvoys(s Scenario) []envoy {
	envoys := make([]envoy, s.Traffic.Envoys)
	gap := float64(time.Second) * float64(s.Traffic.Envoys) / s.Traffic.Rate
	for i := range envoys {
		chance := rand.New(rand.NewPCG(s.Seed, uint64(i)))
		envoys[i] = envoy{
			chance: chance, keys: rand.NewZipf(chance, s.Tenants.Zipf, 1, uint64(s.Tenants.Count-1)), gap: gap,
			turn: chance.IntN(s.Replicas),
		}
		if float64(i) < s.Traffic.Bursty*float64(len(envoys)) {
			envoys[i].gap, envoys[i].burst = gap/2, float64(s.Traffic.Burst)
			if chance.IntN(2) == 0 { // it begins in a burst
				envoys[i].until = int64(envoys[i].burst * chance.ExpFloat64())
			}
		}
	}
	return envoys
}

// next returns when the request after the one at now comes.
func (e *envoy) next(now int64) int64 {
	at := now + int64(e.gap*e.chance.ExpFloat64())
	if e.burst == 0 {
		return at
	}
	// A gap does not remember how long it has lasted: at the start of a burst
	// it is drawn anew.
	for at > e.until {
		begins := e.until + int64(e.burst*e.chance.ExpFloat64())
		e.until = begins + int64(e.burst*e.chance.ExpFloat64())
		at = begins + int64(e.gap*e.chance.ExpFloat64())
	}
	return at
}

// begin plans the first request of each Envoy.
func (w *world) begin() {
	for i := range w.envoys {
		w.askAt(w.envoys[i].next(0), int32(i))
	}
}

func (w *world) askAt(at int64, envoy int32) {
	if at < int64(w.s.Time) {
		w.plan(at, (*world).ask, envoy, 0)
	}
}

// ask has an Envoy send a request to the replica whose turn it is.
func (w *world) ask(envoy, _ int32) {
	e := &w.envoys[envoy]
	key := int32(e.keys.Uint64())
	w.askAt(e.next(w.now), envoy)
	w.tally.arrive(key, w.micros())
	e.turn = (e.turn + 1) % len(w.replicas)
	if w.noticed(e.turn) && len(w.replicas) > 1 {
		e.turn = (e.turn + 1) % len(w.replicas)
	}
	id := w.requests.add(request{key: key, replica: int32(e.turn), began: w.now})
	w.plan(w.now+w.way(), (*world).reach, id, 0)
}

// way is how long something takes from one machine to another.
func (w *world) way() int64 {
	n := &w.s.Network
	d := float64(n.Base) + float64(n.Jitter)*w.chance.ExpFloat64()
	if n.Tail > 0 && w.chance.Float64() < n.Tail {
		d += float64(n.Long) * w.chance.ExpFloat64()
	}
	return int64(d)
}

// noticed says that the Envoys know that a replica is dead.
func (w *world) noticed(replica int) bool {
	d := &w.s.Death
	return d.At > 0 && replica == d.Replica && w.now >= int64(d.At+d.Noticed)
}
