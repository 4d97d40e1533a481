package sim

import "math"

// A node of the Cluster is one core: it takes one batch after the other, as
// they come.
type node struct {
	waiting []int32
	head    int
	busy    bool
	used    int64 // ns of it that count

	batches, scripts, charges int64 // of the time that counts
}

// arrive has a batch wait for its node, or begin.
func (w *world) arrive(id, _ int32) {
	at := w.batches.at(id).node
	n := &w.nodes[at]
	n.waiting = append(n.waiting, id)
	if !n.busy {
		w.serve(at, 0)
	}
}

// serve has a node take the next batch: it decides, by its own clock, and is
// busy for what that costs.
func (w *world) serve(at, _ int32) {
	n := &w.nodes[at]
	if n.busy = n.head < len(n.waiting); !n.busy {
		n.waiting, n.head = n.waiting[:0], 0
		return
	}
	id := n.waiting[n.head]
	if n.head++; n.head >= 1024 {
		n.waiting, n.head = append(n.waiting[:0], n.waiting[n.head:]...), 0
	}
	b := w.batches.at(id)
	done := w.now + int64(math.Round(w.charge(n, b)*w.slowness(at)))
	n.used += w.s.within(w.now, done)
	w.plan(done, (*world).serve, at, 0)
	w.plan(done+w.way(), (*world).answered, id, 0)
}

// slowness is how many times as long a node takes now.
func (w *world) slowness(at int32) float64 {
	s := &w.s.Slow
	if s.Factor > 0 && int(at) == s.Node && w.now >= int64(s.From) && w.now < int64(s.From+s.For) {
		return s.Factor
	}
	return 1
}

// charge makes the charges of b, one after the other, and returns what that
// costs.
func (w *world) charge(n *node, b *batch) (cost float64) {
	c := &w.s.Costs
	w.seen.turn++
	cost = c.RoundTrip
	for _, id := range b.requests {
		req := w.requests.at(id)
		cost += c.Charge
		if w.seen.first(w.seen.keys, int(req.key)) {
			cost += c.Key
		}
		if w.takeToken(req) && w.seen.first(w.seen.written, int(req.key)) {
			cost += c.Write
		}
	}
	if w.s.counts(w.now) {
		n.batches++
		n.scripts += int64(b.scripts)
		n.charges += int64(len(b.requests))
	}
	return cost + float64(b.scripts)*c.Script
}

// takeToken asks the bucket of req for a token.
func (w *world) takeToken(req *request) bool {
	result := w.chargeBucket(req)
	req.allowed, req.retry = result.Allowed, result.RetryAfter
	if result.Allowed && !req.own {
		w.tally.spend(req.key, w.micros())
	}
	return result.Allowed
}

// stamps tell what a batch has come across.
type stamps struct {
	turn                 uint32
	keys, slots, written []uint32
}

func newStamps(tenants int) stamps {
	return stamps{keys: make([]uint32, tenants), slots: make([]uint32, slots), written: make([]uint32, tenants)}
}

// first says whether this is the first time in this turn.
func (s *stamps) first(of []uint32, i int) bool {
	if of[i] == s.turn {
		return false
	}
	of[i] = s.turn
	return true
}
