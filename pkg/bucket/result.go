package bucket

import "time"

// Never is a wait that no time ends: the cost exceeds the burst.
const Never time.Duration = 1<<63 - 1

// A Charge asks the bucket under Key for tokens.
type Charge struct {
	// Key names the bucket. The costs of several charges on one key in one
	// call are summed first; see Group.
	Key string
	// Limits are the bucket's limits, all of which must hold.
	Limits *Limits
	// Cost is how many tokens are asked for. 0 only looks; below 0 gives
	// tokens back.
	Cost int64
	// Shadow takes the charge out of the group that is charged as a whole: it
	// is made alone, if there is room, once the group has passed.
	Shadow bool
	// Lease asks for tokens beyond the cost, to be spent elsewhere, and says
	// what became of others; nil does neither. It is heeded in a call that has
	// this charge alone, not in Shadow. Once a store has failed it keeps the
	// Lease, which says nothing then.
	Lease *Lease
}

// A Result is the answer for one bucket.
type Result struct {
	// Allowed says that the bucket has room for the cost. Whether it was
	// charged depends on the other buckets of the same call.
	Allowed bool
	// Remembered says that this is a denial that was not asked for again.
	Remembered bool
	// Limit is the place in Limits of the one that decided: when denied the
	// one with the longest wait, when allowed the one with the fewest tokens
	// left, then the longest to full, then the first.
	Limit int
	// Remaining is the whole tokens left under that limit; 0 in debt.
	Remaining int64
	// RetryAfter is the wait until the cost is there. 0 when allowed, Never
	// if no wait would help. It may be longer than need be, and so may FullIn,
	// where the limits became slower since the bucket was charged: it is full
	// once it would have been under the old ones. So too under Aligned after
	// the clock was set back, which does not put off the moment of being full.
	// While tokens are leased, both are as if all were spent and the last lease
	// ended first, but for a RetryAfter for which what was spent comes back in time.
	RetryAfter time.Duration
	// FullIn is the time until that limit is full.
	FullIn time.Duration
	// Err says that this bucket could not be read, while the store answered
	// for the others. The bucket was not charged and the rest means nothing.
	Err error
}

// Result describes b, settled, for a charge of cost. With charged there was
// room and cost has been taken already (or was 0); without, it is what b
// lacks for it. What was taken without there being room, as debt, is not
// charged in this sense.
func (b Bucket) Result(ls *Limits, cost int64, charged bool) Result {
	return b.describe(ls, cost, charged)
}

func (b *Bucket) describe(ls *Limits, cost int64, charged bool) Result {
	best := Result{Allowed: true}
	for i := range ls.list {
		r := b.result(ls, i, cost, charged)
		if i == 0 || r.Tighter(best) {
			best = r
		}
	}
	return best
}

// Tighter says that r decides before o, both being answers to one request.
func (r Result) Tighter(o Result) bool {
	switch {
	case r.Allowed != o.Allowed:
		return !r.Allowed
	case !r.Allowed:
		return r.RetryAfter > o.RetryAfter
	case r.Remaining != o.Remaining:
		return r.Remaining < o.Remaining
	default:
		return r.FullIn > o.FullIn
	}
}

func (b *Bucket) result(ls *Limits, i int, cost int64, charged bool) Result {
	l, need := &ls.list[i], ls.need(cost)
	r := Result{Allowed: true, Limit: i, Remaining: l.burst}
	if b.ls != nil {
		gone := b.gone(i)
		r.Remaining, r.FullIn = l.burst-gone, micros(b.wait(i, gone))
	}
	lacks := need - r.Remaining
	r.Remaining = max(r.Remaining, 0)
	if charged || need == 0 || lacks <= 0 {
		return r
	}
	r.Allowed, r.RetryAfter = false, Never
	if need <= l.burst {
		r.RetryAfter = micros(b.wait(i, lacks))
	}
	return r
}

func micros(us int64) time.Duration { return time.Duration(us) * time.Microsecond }
