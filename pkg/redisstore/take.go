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
// Any other failure is an *Error for the whole call. After the Causes timeout,
// canceled, broken, closed, reply and other the charges may have been made;
// after the rest none was.
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
	return s.takeAll(ctx, []group{{charges: charges, results: results}})
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

// within returns ctx with the deadline of a call. Where ctx itself ends sooner,
// a fifth of what is left of it is for the caller, to do without an answer.
func (s *Store) within(ctx context.Context) (context.Context, context.CancelFunc) {
	wait := s.deadline
	if end, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(end)*4/5)
	}
	return context.WithTimeout(ctx, wait)
}

// perform has jobs and then calls made, those of different slots side by side, and
// returns the first error of the calls; each of them has its own.
func (s *Store) perform(ctx context.Context, calls []*call, before ...*job) error {
	stale := s.ask(ctx, calls, before)
	for _, c := range stale {
		c.sets.at(time.UnixMicro(c.now))
	}
	for _, c := range s.ask(ctx, stale, nil) {
		c.err = errPeriod
	}
	for _, c := range calls {
		if c.err != nil {
			return c.err
		}
	}
	return nil
}

// ask has jobs and then calls made, and returns the calls that were not, for
// the running period of a calendar is another than it seemed.
func (s *Store) ask(ctx context.Context, calls []*call, before []*job) (stale []*call) {
	var asked []*call
	jobs := before
	for _, c := range calls {
		if len(c.asks) > 0 {
			j := s.job(c)
			if c.behind {
				j.behind = inSlot(before, c.slot)
			}
			asked, jobs = append(asked, c), append(jobs, j)
		}
	}
	if len(jobs) > 0 {
		s.nodes.do(ctx, jobs)
	}
	for i, j := range jobs[len(jobs)-len(asked):] {
		c := asked[i]
		switch c.err = j.err; {
		case c.err != nil:
		case c.stale(j.reply):
			c.now = j.reply.numbers[0]
			s.learn(c.now)
			stale = append(stale, c)
		default:
			c.err = c.read(j.reply)
		}
	}
	return stale
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
