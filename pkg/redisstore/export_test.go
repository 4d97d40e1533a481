package redisstore

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// TakeEach makes the charges of several requests in one call.
func (s *Store) TakeEach(ctx context.Context, charges [][]bucket.Charge, results [][]bucket.Result) error {
	return s.takeAll(ctx, groupsOf(charges, results))
}

func groupsOf(charges [][]bucket.Charge, results [][]bucket.Result) []group {
	groups := make([]group, len(charges))
	for i := range groups {
		groups[i] = group{charges: charges[i], results: results[i]}
	}
	return groups
}

// Answered is the cause of an error that the server answered.
func Answered(text string) string { return answered(text) }

// TakeAndUndo makes charges, has something happen, and gives back what was
// charged, as is done for a group that fails in another slot.
func (s *Store) TakeAndUndo(ctx context.Context, charges []bucket.Charge, meanwhile func()) error {
	ctx, cancel := s.within(ctx)
	defer cancel()
	c := newCall(s.prefix, []group{{charges: charges, results: make([]bucket.Result, len(charges)), flags: told}}, s.about())
	if err := s.perform(ctx, []*call{c}); err != nil {
		return err
	}
	meanwhile()
	records := c.undo()
	undo := &job{script: undoScript, args: s.args(nil, c, &records)}
	s.nodes.do(ctx, []*job{undo})
	return undo.err
}

// usualScript is usual.lua with nothing behind it.
var usualScript = newScript(refillLua + usualLua + "return {}")

// TakeUsual makes charges if that script does, and says whether it has.
func (s *Store) TakeUsual(ctx context.Context, charges []bucket.Charge, results []bucket.Result) (bool, error) {
	usual, _, err := s.TakeEachUsual(ctx, [][]bucket.Charge{charges}, [][]bucket.Result{results})
	return usual, err
}

// TakeEachUsual makes the charges of several requests if that script does, and
// says whether it has, and how many requests were made together with others.
func (s *Store) TakeEachUsual(ctx context.Context, charges [][]bucket.Charge, results [][]bucket.Result) (usual bool, joined int, err error) {
	ctx, cancel := s.within(ctx)
	defer cancel()
	c := newCall(s.prefix, groupsOf(charges, results), s.about())
	for _, next := range c.next {
		if next > 0 {
			joined++
		}
	}
	j := s.prepare(c)
	j.script = usualScript
	s.nodes.do(ctx, []*job{j})
	if j.err != nil || len(j.reply.numbers) == 0 {
		return false, joined, j.err
	}
	return true, joined, c.read(j.reply, nil)
}

// Redialer dials as the pool of a server does that has so many places.
func Redialer(places int64, stop <-chan struct{}, f dial) dial {
	return (&dialer{dial: f, places: places, stop: stop, made: new(atomic.Int64)}).Dial
}

// Lead has callers carry out batches however long they may have to wait.
func (s *Store) Lead() { s.leadTime = time.Hour }

// Waiting is how many requests wait for a lane, and how many lanes are busy.
func (s *Store) Waiting() (waiting, busy int) {
	s.nodes.mu.Lock()
	defer s.nodes.mu.Unlock()
	for _, at := range s.nodes.clients {
		at.queue.mu.Lock()
		waiting, busy = waiting+at.queue.length(), busy+at.queue.under
		at.queue.mu.Unlock()
	}
	return waiting, busy
}

// Left is told when a lane is woken for a request that was left behind by one
// that has been taken by its caller: that one has less time.
func Left() <-chan struct{} {
	q, b, now := newQueue(2), new(batch), time.Now()
	soon, late := newEntry(), newEntry()
	soon.leads, soon.until, late.until = true, now.Add(time.Second), now.Add(time.Hour)
	_, _ = q.push(soon, now)
	_, _ = q.push(late, now)
	b.leader, b.until = soon, soon.until
	q.take(b, true)
	return q.wake
}

// MaxWaiting is how many requests may wait for a server.
const MaxWaiting = maxWaiting

// ReadReply sets results to what a script's reply to the charges of several
// requests says, as if it had come from a server.
func ReadReply(list []any, wasTold bool, charges [][]bucket.Charge, results [][]bucket.Result) error {
	groups, texts := groupsOf(charges, results), 0
	if wasTold {
		groups[0].flags = told
	}
	c := newCall("sl:", groups, time.UnixMicro(0))
	if wasTold {
		texts = 2 * len(c.keys.list)
	}
	r, err := readReply(list, texts)
	switch {
	case err != nil:
		return err
	case c.isStale(r):
		c.sets.at(time.UnixMicro(r.numbers[0]))
		return errPeriod
	}
	if err = c.read(r, func(string, bucket.Bucket) {}); err == nil && wasTold {
		c.undo()
	}
	return err
}
