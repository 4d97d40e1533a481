package sim

import (
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/lease"
)

// Leases have replicas take tokens ahead, of the tenants with a limit of Least
// a second or more. A Share of 0 is none.
type Leases struct {
	Share int64         `json:"share"` // of the burst, in ten-thousandths
	For   time.Duration `json:"for"`
	Least int64         `json:"least"`
}

// leased says that tokens under these limits are taken ahead.
func (l *Leases) leased(limit bucket.Limit) bool {
	return l.Share > 0 && limit.Per == time.Second && limit.Tokens >= l.Least
}

// holder returns what r has of the bucket of key, nil where no tokens are taken
// ahead.
func (w *world) holder(r *replica, key int32) *lease.Holder {
	if tokens, _ := w.tenants.limits[key].Lease(); tokens == 0 {
		return nil
	}
	h := r.held[key]
	if h == nil {
		h = new(lease.Holder)
		r.held[key] = h
	}
	return h
}

// spendHeld answers a request from what its replica holds, or has it ask for
// tokens, and says whether it has answered.
func (w *world) spendHeld(r *replica, id int32) bool {
	req := w.requests.at(id)
	h := w.holder(r, req.key)
	if h == nil {
		return false
	}
	choice := h.Decide(w.clock(), w.tenants.limits[req.key], 1)
	switch choice.Way {
	case lease.Spend:
		req.allowed = true
		w.tally.spend(req.key, w.micros())
		w.tally.leased++
		w.answer(id)
		return true
	case lease.Ask:
		req.lease = &choice.Lease
	}
	return false
}

// granted tells the holder of what req asked for and what came of it.
func (w *world) granted(r *replica, req *request) {
	h := r.held[req.key]
	h.Answered(w.clock(), req.lease, bucket.Result{Allowed: req.allowed})
	if held, _, stops := h.Held(); held > 0 {
		w.plan(max(int64(stops.Sub(epoch)), w.now), (*world).stop, req.replica, req.key)
	}
}

// stop gives back what is held of a key, if its time is over.
func (w *world) stop(replica, key int32) {
	r := &w.replicas[replica]
	h := r.held[key]
	if held, _, stops := h.Held(); r.dead || held == 0 || w.clock().Before(stops) {
		return
	}
	l := h.End(w.clock())
	id := w.requests.add(request{key: key, replica: replica, own: true, lease: &l, asked: w.now, until: w.now + int64(w.s.Deadline)})
	w.push(&r.queues[w.nodeOf(key)], id)
}

// chargeBucket charges the bucket of req, with its lease.
func (w *world) chargeBucket(req *request) bucket.Result {
	c := bucket.Charge{Limits: w.tenants.limits[req.key], Cost: 1, Lease: req.lease}
	if req.own {
		c.Cost = 0
	}
	b, result := w.buckets[req.key].Charge(&c, w.clock())
	w.buckets[req.key] = b
	return result
}
