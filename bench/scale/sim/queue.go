package sim

import "time"

// What pkg/redisstore's queue goes by.
const (
	batchCharges = 128
	maxWaiting   = 4096
	maxLanes     = 8
	late         = 5 * time.Millisecond
)

// A queue gathers what one replica asks of one node, as pkg/redisstore's does:
// with nothing under way a request goes at once; what comes meanwhile goes as
// one when that is answered. A second batch goes beside the first when it is
// full, or the first is late.
type queue struct {
	replica, node int32
	waiting       []int32
	head          int
	under         int   // batches
	began         int64 // the newest
	armed         bool
}

// A batch is what goes to a node in one round trip.
type batch struct {
	requests      []int32
	replica, node int32
	until         int64 // the last of them is waited for so long
	over          bool  // nobody waits for it any more
	scripts       int   // one a slot
	turn          int32 // tells it from the others that had its place
}

func (q *queue) length() int { return len(q.waiting) - q.head }

func (w *world) push(q *queue, id int32) {
	if q.length() >= maxWaiting {
		w.fail(id, noRoom, w.now)
		return
	}
	q.waiting = append(q.waiting, id)
	w.start(q)
}

// start begins another batch if it is time, and else looks again when the
// newest is late.
func (w *world) start(q *queue) {
	switch {
	case q.length() == 0:
	case q.under < maxLanes && (q.under == 0 || q.length() >= batchCharges || w.now-q.began >= int64(late)):
		q.under++
		w.take(q, true)
	case !q.armed:
		q.armed = true
		w.plan(w.now+int64(late), (*world).overdue, q.replica, q.node)
	}
}

func (w *world) overdue(replica, node int32) {
	q := &w.replicas[replica].queues[node]
	q.armed = false
	w.start(q)
}

// take has a lane go on with what waits, or rest.
func (w *world) take(q *queue, woken bool) {
	var taken []int32
	id := w.spare()
	if woken || q.under == 1 || q.length() >= batchCharges || w.now-q.began >= int64(late) {
		taken = w.fill(q, w.batches.at(id).requests)
	}
	if len(taken) == 0 {
		w.batches.drop(id)
		q.under--
		w.start(q)
		return
	}
	q.began = w.now
	b := w.batches.at(id)
	*b = batch{requests: taken, replica: q.replica, node: q.node, until: w.requests.at(taken[len(taken)-1]).until, turn: b.turn + 1}
	w.plan(b.until, (*world).giveUp, id, b.turn)
	w.plan(w.work(&w.replicas[q.replica], w.sending(b))+w.way(), (*world).arrive, id, 0)
}

// sending is what b costs a replica until it is sent.
func (w *world) sending(b *batch) float64 {
	c := &w.s.Costs
	w.seen.turn++
	for _, id := range b.requests {
		if w.seen.first(w.seen.slots, int(w.tenants.slot[w.requests.at(id).key])) {
			b.scripts++
		}
	}
	return c.Batch/2 + float64(b.scripts)*c.Send + float64(len(b.requests))*c.Ask
}

// spare returns a batch that is empty and has room.
func (w *world) spare() int32 {
	if n := len(w.batches.free); n > 0 {
		id := w.batches.free[n-1]
		w.batches.free = w.batches.free[:n-1]
		return id
	}
	return w.batches.add(batch{})
}

// fill takes what waits. Who has given up is left out.
func (w *world) fill(q *queue, room []int32) []int32 {
	taken := room[:0]
	for q.head < len(q.waiting) && len(taken) < batchCharges {
		id := q.waiting[q.head]
		q.head++
		if until := w.requests.at(id).until; until <= w.now {
			w.fail(id, tooLate, until)
			continue
		}
		taken = append(taken, id)
	}
	if q.head == len(q.waiting) {
		q.waiting, q.head = q.waiting[:0], 0
	} else if q.head >= maxWaiting {
		q.waiting, q.head = append(q.waiting[:0], q.waiting[q.head:]...), 0
	}
	return taken
}

// giveUp frees the lane of a batch that has no answer when nobody waits for it
// any more.
func (w *world) giveUp(id, turn int32) {
	b := w.batches.at(id)
	if b.turn != turn || b.over {
		return
	}
	b.over = true
	w.freeLane(b)
}

func (w *world) freeLane(b *batch) {
	if r := &w.replicas[b.replica]; !r.dead {
		w.take(&r.queues[b.node], false)
	}
}

// answered hands out what a node answered, and has the lane go on.
func (w *world) answered(id, _ int32) {
	b := w.batches.at(id)
	r := &w.replicas[b.replica]
	if !r.dead {
		w.work(r, w.s.Costs.Batch/2)
	}
	for _, waiting := range b.requests {
		req := w.requests.at(waiting)
		switch {
		case r.dead:
			w.lose(req)
			w.fail(waiting, diedOnIt, int64(w.s.Death.At))
		case w.now >= req.until:
			w.lose(req)
			w.fail(waiting, tooLate, req.until)
		default:
			w.heed(r, waiting)
		}
	}
	if !b.over {
		b.over = true
		w.freeLane(b)
	}
	w.batches.drop(id)
}

// heed makes use of an answer that is in time.
func (w *world) heed(r *replica, id int32) {
	req := w.requests.at(id)
	if req.own {
		w.requests.drop(id)
		return
	}
	if req.lease != nil {
		w.granted(r, req)
	}
	if !req.allowed {
		w.remember(r, req)
	}
	w.answer(id)
}

// lose counts a token that was taken for somebody who had gone.
func (w *world) lose(req *request) {
	if req.allowed && !req.own {
		w.tally.lost++
	}
}
