package redisstore

import (
	"context"
	"runtime"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// A batch is what goes to a server in one round trip: for each slot one run of
// the script with the groups of all who wait, in their order, and what has to
// be a run of its own.
type batch struct {
	entries []*entry
	charges int
	until   time.Time // the last of them waits so long; or its leader does
	leader  *entry    // whose caller carries it out; nil is a lane
	calls   []*call   // one a slot
	spare   []*call
	jobs    []*job
}

// add adds e, unless b is full.
func (b *batch) add(e *entry) bool {
	charges := len(e.group.charges) + len(e.jobs)
	switch {
	case len(b.entries) > 0 && b.charges+charges > batchCharges:
		return false
	case b.leader == nil && e.until.After(b.until):
		b.until = e.until
	case b.leader != nil && e.until.Sub(b.until) > leadSlack:
		return false
	}
	b.entries = append(b.entries, e)
	b.charges += charges
	return true
}

// build makes the calls and jobs of b.
func (b *batch) build(s *Store) {
	now := s.about()
	for _, e := range b.entries {
		if e.jobs != nil {
			b.jobs = append(b.jobs, e.jobs...)
			continue
		}
		c := b.call(e.slot, s.prefix, now)
		c.waiters = append(c.waiters, e)
		c.charge(e.group)
	}
	for _, c := range b.calls {
		b.jobs = append(b.jobs, s.prepare(c))
	}
}

// call returns the call of slot.
func (b *batch) call(slot uint16, prefix string, now time.Time) *call {
	for _, c := range b.calls {
		if c.slot == slot {
			return c
		}
	}
	var c *call
	if last := len(b.spare) - 1; last >= 0 {
		c, b.spare = b.spare[last], b.spare[:last]
	} else {
		c = new(call)
	}
	c.begin(prefix, slot, now)
	b.calls = append(b.calls, c)
	return c
}

// reset empties b. It keeps the room of its calls, but for those that go on
// without it.
func (b *batch) reset() {
	clear(b.entries)
	clear(b.jobs)
	for _, c := range b.calls {
		if !c.goesOn && len(b.spare) < maxSpare {
			c.empty()
			b.spare = append(b.spare, c)
		}
	}
	clear(b.calls)
	b.entries, b.jobs, b.calls = b.entries[:0], b.jobs[:0], b.calls[:0]
	b.charges, b.until, b.leader = 0, time.Time{}, nil
}

// maxSpare is how many calls a lane keeps: on a Cluster there is one a slot.
const maxSpare = 64

// lead carries out a batch at a server on behalf of e, which is to be in it.
func (s *Store) lead(at *node, e *entry) {
	runtime.Gosched() // as a lane does
	b := s.batches.Get().(*batch)
	b.leader, b.until = e, e.until
	if at.queue.take(b, true) {
		s.serve(at, b)
		at.queue.rest()
	}
	b.reset()
	s.batches.Put(b)
}

// serve carries out b at a server and answers those who wait. What has to be
// sent again goes on by itself: it does not hold up the lane.
func (s *Store) serve(at *node, b *batch) {
	v := s.nodes.view.Load()
	b.build(s)
	ctx, cancel := context.WithDeadline(context.Background(), b.until)
	at.carryOut(ctx, b.jobs)
	rest := s.deliver(b)
	if len(rest) == 0 {
		cancel()
		return
	}
	for _, c := range rest {
		c.goesOn, c.job.at, c.job.sends = true, at.client.Options().Addr, 1
	}
	if !s.nodes.begin(func() {
		defer cancel()
		s.goOn(ctx, v, rest)
	}) {
		cancel()
		fail(rest, errClosed)
	}
}

// deliver answers those whose part of b is done, and returns what is not.
func (s *Store) deliver(b *batch) (rest []*call) {
	for _, e := range b.entries {
		if e.jobs != nil {
			e.deliver()
		}
	}
	for _, c := range b.calls {
		if s.heed(c); c.err == nil && !c.stale {
			c.answer()
		} else {
			rest = append(rest, c)
		}
	}
	return rest
}

// deliver gives the jobs of e what came of them.
func (e *entry) deliver() {
	if !e.settle() {
		return
	}
	for _, j := range e.jobs {
		j.of.reply, j.of.err = j.reply, j.err
	}
	e.answer(nil)
}

func fail(calls []*call, err error) {
	for _, c := range calls {
		c.err = err
		c.answer()
	}
}

// goOn sends calls again that have been sent, as far as that may be and may
// help, and answers them.
func (s *Store) goOn(ctx context.Context, v *view, calls []*call) {
	calls, split := s.alone(calls)
	s.nodes.retry(ctx, v, jobsOf(calls))
	s.nodes.do(ctx, jobsOf(split))
	calls = append(calls, split...)
	s.conclusive(ctx, calls)
	for _, c := range calls {
		c.answer()
	}
}

// writesNothing are the causes of errors of a server that lets no script write.
// A call of one group has them only if it has something to write.
var writesNothing = map[string]bool{"full": true, "readonly": true, "disk": true, "replicas": true}

// alone splits those of calls into one a group that failed because one of their
// groups had something to write: others have not, and are to be answered.
func (s *Store) alone(calls []*call) (rest, split []*call) {
	for _, c := range calls {
		if len(c.groups) < 2 || !writesNothing[cause(c.err)] {
			rest = append(rest, c)
			continue
		}
		for i, g := range c.groups {
			one := s.callIn(c.slot, g)
			one.waiters = c.waiters[i : i+1]
			s.prepare(one)
			split = append(split, one)
		}
	}
	return rest, split
}

// claim settles those who wait for c, before their results are written. Those
// who do not wait any more are not to see them.
func (c *call) claim() {
	if c.claimed {
		return
	}
	c.claimed = true
	for i, e := range c.waiters {
		if !e.settle() {
			c.groups[i].results = make([]bucket.Result, len(c.groups[i].results))
			c.waiters[i] = nil
		}
	}
}

// answer answers those who wait for c.
func (c *call) answer() {
	c.claim()
	for _, e := range c.waiters {
		if e != nil {
			e.answer(c.err)
		}
	}
}
