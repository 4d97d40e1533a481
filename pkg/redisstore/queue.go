package redisstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

const (
	// batchCharges is about how many charges go to a server at once: a script
	// that makes so many holds it for about a millisecond.
	batchCharges = 128
	// maxWaiting is how many requests may wait for one server: more than it
	// serves within the usual deadline.
	maxWaiting = 4096
	// maxLanes is how many batches may be under way to one server.
	maxLanes = 8
	// late is when a batch that is under way keeps others waiting no more.
	late = 5 * time.Millisecond
	// leadTime is how long a caller may have to wait that carries out a batch
	// itself: it cannot give up sooner.
	leadTime = time.Second
	// leadSlack is how much longer others in that batch may want to wait.
	leadSlack = time.Millisecond
)

var errQueue = errors.New("too many requests wait for the server")

// A queue gathers what is to go to one server while a round trip is under way,
// and has it go as one when that is over. With none under way nothing waits.
// A second round trip begins beside the first when a batch is full, or the
// first is late: a connection that hangs holds up its own batch alone.
//
// A caller who comes while none is under way carries out the first batch
// itself: to wake another goroutine for it, and to be woken by that, would cost
// as much as all else here.
type queue struct {
	lanes int
	wake  chan struct{} // a lane that rests

	mu      sync.Mutex
	waiting []*entry
	head    int       // what is before it in waiting has gone
	under   int       // lanes that do not rest
	woken   int       // of those, that have not taken anything yet
	began   time.Time // the newest batch
	timer   *time.Timer
	armed   bool
	closed  bool
}

func newQueue(lanes int) *queue {
	q := &queue{lanes: lanes, wake: make(chan struct{}, lanes)}
	q.timer = time.AfterFunc(time.Hour, q.overdue)
	q.timer.Stop()
	return q
}

// push adds e, or says why not. With lead, its caller is to take and carry out
// a batch, and then to rest.
func (q *queue) push(e *entry, now time.Time) (lead bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return false, errClosed
	case q.length() >= maxWaiting && !e.must:
		return false, errQueue
	}
	q.waiting = append(q.waiting, e)
	if lead = e.leads && q.under == 0; lead {
		q.under++
		q.woken++
		return true, nil
	}
	q.start(now)
	return false, nil
}

func (q *queue) length() int { return len(q.waiting) - q.head }

// start wakes a lane if it is time for another batch, and else sees to it that
// what waits is looked after once the newest is late.
func (q *queue) start(now time.Time) {
	due := q.under == 0 || q.length() >= batchCharges || now.Sub(q.began) >= late
	switch {
	case q.length() == 0 || q.woken > 0:
	case due && q.under < q.lanes:
		q.under++
		q.woken++
		q.wake <- struct{}{}
	case !q.armed:
		q.armed = true
		q.timer.Reset(late)
	}
}

func (q *queue) overdue() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.armed = false
	if !q.closed {
		q.start(time.Now())
	}
}

// take moves what is to go next into b, and says whether there is anything. If
// not, the lane rests; woken says that it has until now.
func (q *queue) take(b *batch, woken bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if woken {
		q.woken--
	}
	if woken || q.under == 1 || q.length() >= batchCharges || now.Sub(q.began) >= late {
		q.fill(b)
	}
	if len(b.entries) == 0 {
		q.under--
		q.start(now)
		return false
	}
	q.began = now
	q.start(now) // what is left behind
	return true
}

// rest ends what began with a push that leads.
func (q *queue) rest() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.under--
	if !q.closed {
		q.start(time.Now())
	}
}

// fill moves what waits into b, as far as there is room.
func (q *queue) fill(b *batch) {
	for q.head < len(q.waiting) {
		e := q.waiting[q.head]
		gone := e.state.Load() == gone
		if !gone && !b.add(e) {
			break
		}
		q.waiting[q.head] = nil
		q.head++
	}
	switch {
	case q.head == len(q.waiting):
		q.waiting, q.head = q.waiting[:0], 0
	case q.head >= maxWaiting:
		q.waiting, q.head = append(q.waiting[:0], q.waiting[q.head:]...), 0
	}
}

// close ends the lanes once they have answered what is under way, and fails
// what waits.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.closed = true
	q.timer.Stop()
	for _, e := range q.waiting[q.head:] {
		if e.settle() {
			e.answer(errClosed)
		}
	}
	q.waiting, q.head = nil, 0
	close(q.wake)
}

// An entry is what one caller waits for: a group of charges, or jobs that go in
// order and not with others in one script.
type entry struct {
	group group
	slot  uint16
	jobs  []*job
	must  bool      // it gives back, and is never too much
	leads bool      // its caller may carry out a batch
	until time.Time // then nobody waits any more

	state atomic.Uint32
	err   error // once done has been sent to
	done  chan struct{}
	timer *time.Timer
}

// The states of an entry. It is its caller's again when it is settled and done
// is sent to; when it is gone, never.
const (
	waits = iota
	settled
	gone
)

func newEntry() *entry {
	e := &entry{done: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	e.timer.Stop()
	return e
}

// settle says that the caller waits still and will until it is answered.
func (e *entry) settle() bool { return e.state.CompareAndSwap(waits, settled) }

// answer ends the wait of the caller of e, which is settled.
func (e *entry) answer(err error) {
	e.err = err
	e.done <- struct{}{}
}

// await waits for the answer. Without one when ctx ends or the time is over, e
// is gone.
func (e *entry) await(ctx context.Context, wait time.Duration) error {
	select {
	case <-e.done:
		return e.err
	default:
	}
	e.timer.Reset(wait)
	defer e.timer.Stop()
	var err error
	select {
	case <-e.done:
		return e.err
	case <-ctx.Done():
		err = ctx.Err()
	case <-e.timer.C:
		err = context.DeadlineExceeded
	}
	if e.state.CompareAndSwap(waits, gone) {
		return err
	}
	<-e.done
	return e.err
}

// begin makes e ready for charges.
func (e *entry) begin(slot uint16, charges []bucket.Charge, results []bucket.Result, until time.Time) {
	e.group = group{charges: charges, results: results, sums: bucket.Sums(e.group.sums[:0], charges)}
	e.slot, e.until = slot, until
	e.state.Store(waits)
}

// end lets go of what e was given, all but room.
func (e *entry) end() {
	e.group = group{sums: e.group.sums}
	e.err = nil
}
