package sim

import (
	"math"
	"time"

	"github.com/sluice-mesh/sluice/pkg/denycache"
	"github.com/sluice-mesh/sluice/pkg/lease"
)

// A replica decides requests, on as many cores as it has.
type replica struct {
	cores   []int64         // when each is free
	used    int64           // ns of all of them that count
	denials map[int32]int64 // until when each key is known to be empty
	held    map[int32]*lease.Holder
	queues  []queue // one a node
	dead    bool
}

// work takes the first core that is free, and returns when it is done.
func (w *world) work(r *replica, cost float64) (done int64) {
	first := 0
	for i := range r.cores {
		if r.cores[i] < r.cores[first] {
			first = i
		}
	}
	begun := max(w.now, r.cores[first])
	done = begun + int64(math.Round(cost))
	r.cores[first] = done
	r.used += w.s.within(begun, done)
	return done
}

// reach has a request be read.
func (w *world) reach(id, _ int32) {
	r := &w.replicas[w.requests.at(id).replica]
	if r.dead {
		w.fail(id, diedOnIt, w.now)
		return
	}
	w.plan(w.work(r, w.s.Costs.Receive), (*world).decide, id, 0)
}

// decide answers a request, or asks the store.
func (w *world) decide(id, _ int32) {
	req := w.requests.at(id)
	r := &w.replicas[req.replica]
	switch {
	case r.dead:
		w.fail(id, diedOnIt, w.now)
	case w.s.DenialCache && w.now < r.denials[req.key]:
		req.allowed = false
		w.tally.remembered++
		w.answer(id)
	case w.spendHeld(r, id):
	default:
		req.asked, req.until = w.now, w.now+int64(w.s.Deadline)
		w.push(&r.queues[w.nodeOf(req.key)], id)
	}
}

// nodeOf is the node that keeps a key: each has as many slots as the others.
func (w *world) nodeOf(key int32) int32 {
	return int32(int(w.tenants.slot[key]) * len(w.nodes) / slots)
}

// answer sends the answer of a request that is decided.
func (w *world) answer(id int32) {
	req := w.requests.at(id)
	r := &w.replicas[req.replica]
	done := w.work(r, w.s.Costs.Answer)
	if d := &w.s.Death; d.At > 0 && int(req.replica) == d.Replica && done >= int64(d.At) {
		w.fail(id, diedOnIt, max(w.now, int64(d.At)))
		return
	}
	w.tally.finish(req, done+w.way())
	w.requests.drop(id)
}

// fail has a request go without an answer of the store since then.
func (w *world) fail(id int32, why cause, at int64) {
	req := w.requests.at(id)
	if req.lease != nil && !req.own {
		w.replicas[req.replica].held[req.key].Failed(w.clock())
	}
	if !req.own {
		w.tally.fail(req, why, at+w.way())
	}
	w.requests.drop(id)
}

// remember keeps a denial until its bucket may have the next token, counted
// from before it was asked, for pkg/denycache's time at most.
func (w *world) remember(r *replica, req *request) {
	if lasts := min(denycache.Longest, req.retry-time.Microsecond); lasts > 0 && w.s.DenialCache {
		r.denials[req.key] = req.asked + int64(lasts)
	}
}

// die ends a replica, and with it all that waits there.
func (w *world) die(id, _ int32) {
	r := &w.replicas[id]
	r.dead = true
	for i := range r.queues {
		q := &r.queues[i]
		for _, waiting := range q.waiting[q.head:] {
			w.fail(waiting, diedOnIt, w.now)
		}
		q.waiting, q.head = nil, 0
	}
}
