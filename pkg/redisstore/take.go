package redisstore

import (
	"context"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// Take makes charges as bucket.Group does. A value under one of the keys that
// is no bucket is left alone: its charge is not made, its result's Err is an
// *Error of Cause "foreign", and the others are answered as if it had room.
//
// After an error the Store may read charges still, but it sets no result any
// more. Any other failure is an *Error for the whole call. After the Causes
// timeout, canceled, broken, closed, reply and other the charges may have been
// made; after the rest none was.
//
// Where nobody else asks, a call that has a second or less carries itself out:
// if ctx is canceled meanwhile, it returns by its deadline, and no sooner.
//
// On a Cluster, the buckets of one slot are charged as one. Those of several
// slots are charged side by side, and given back if one of them denies: for as
// long as that takes, others may find fewer tokens there than they should, and
// never more. Refunds and Shadow charges follow once it is known whether the
// rest passed; one that then fails has an Err in its result.
func (s *Store) Take(ctx context.Context, charges []bucket.Charge, results []bucket.Result) error {
	if len(charges) != len(results) {
		return failure("take", errLengths)
	}
	if n, slot := s.home(charges); n != nil {
		return failure("take", s.takeAt(ctx, n, slot, charges, results))
	}
	return s.takeAll(ctx, []group{{charges: charges, results: results}})
}

// home returns the server that has the slot of all charges, or nil: they are in
// several, or it is not known.
func (s *Store) home(charges []bucket.Charge) (n *node, slot uint16) {
	v := s.nodes.view.Load()
	if v == nil || len(charges) == 0 {
		return nil, 0
	}
	if s.clustered {
		var one bool
		if slot, one = s.slot(charges); !one {
			return nil, 0
		}
	}
	return v.node(slot), slot
}

// takeAt makes charges in one slot, that n has, with those of others.
func (s *Store) takeAt(ctx context.Context, n *node, slot uint16, charges []bucket.Charge, results []bucket.Result) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	now := time.Now()
	wait := s.patience(ctx)
	e := s.entries.Get().(*entry)
	e.begin(slot, charges, results, now.Add(wait))
	e.leads = wait <= s.leadTime
	lead, err := n.queue.push(e, now)
	if lead {
		s.lead(n, e)
	}
	if err == nil {
		if err = e.await(ctx, wait); e.state.Load() == gone {
			return err // e is its batch's
		}
	}
	e.end()
	s.entries.Put(e)
	return err
}

// takeAll makes the charges of several requests in turn, in one call.
func (s *Store) takeAll(ctx context.Context, groups []group) error {
	ctx, cancel := s.within(ctx)
	defer cancel()
	if s.clustered {
		return failure("take", s.takeSlots(ctx, groups))
	}
	return failure("take", s.perform(ctx, []*call{newCall(s.prefix, groups, s.about())}))
}

// within returns ctx with the deadline of a call.
func (s *Store) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.patience(ctx))
}

// patience is how long a call may take. Where ctx itself ends sooner, a fifth
// of what is left of it is for the caller, to do without an answer.
func (s *Store) patience(ctx context.Context) time.Duration {
	wait := s.deadline
	if end, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(end)*4/5)
	}
	return wait
}

// perform has jobs and then calls made, those of different slots side by side, and
// returns the first error of the calls; each of them has its own.
func (s *Store) perform(ctx context.Context, calls []*call, before ...*job) error {
	var asked []*call
	jobs := before
	for _, c := range calls {
		if len(c.asks) == 0 {
			continue
		}
		j := s.prepare(c)
		if c.behind {
			j.behind = inSlot(before, c.slot)
		}
		asked, jobs = append(asked, c), append(jobs, j)
	}
	s.nodes.do(ctx, jobs)
	s.conclusive(ctx, asked)
	for _, c := range calls {
		if c.err != nil {
			return c.err
		}
	}
	return nil
}

// conclusive heeds what has become of calls, and has those made once more that
// were not because the running period of a calendar is another than it seemed.
func (s *Store) conclusive(ctx context.Context, calls []*call) {
	var stale []*call
	for _, c := range calls {
		if s.heed(c); c.stale {
			stale = append(stale, c)
		}
	}
	for _, c := range stale {
		c.sets.at(time.UnixMicro(c.now))
		s.prepare(c)
	}
	s.nodes.do(ctx, jobsOf(stale))
	for _, c := range stale {
		if s.heed(c); c.stale {
			c.err = errPeriod
		}
	}
}

func jobsOf(calls []*call) []*job {
	jobs := make([]*job, len(calls))
	for i, c := range calls {
		jobs[i] = &c.job
	}
	return jobs
}

// heed reads what has become of the job of c.
func (s *Store) heed(c *call) {
	c.err = c.job.err
	c.stale = c.err == nil && c.isStale(c.job.reply)
	switch {
	case c.stale:
		c.now = c.job.reply.numbers[0]
		s.learn(c.now)
	case c.err == nil:
		c.claim()
		c.err = s.read(c)
	}
}

// about returns what time it is on the server, as far as is known.
func (s *Store) about() time.Time {
	if s.now != nil {
		return s.now()
	}
	return time.Now().Add(time.Duration(s.ahead.Load()))
}

// learn notes how far the server's clock is ahead.
func (s *Store) learn(now int64) { s.ahead.Store(int64(time.Until(time.UnixMicro(now)))) }

// inSlot returns the job in slot, or nil.
func inSlot(jobs []*job, slot uint16) *job {
	for _, j := range jobs {
		if j.slot == slot {
			return j
		}
	}
	return nil
}
