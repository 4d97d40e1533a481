package bucket

import "time"

// Group makes the charges of one call at now and sets results[i] for
// charges[i]; the two have one length. It is the rule that every store keeps:
//
//   - The charges that are not Shadow are one group: all are made or none.
//     Group says whether they were. A cost of 0 or below always finds room;
//     in a group that fails for another reason it is not made either.
//   - After a group that passed, each bucket that Shadow charges is charged
//     alone if it has room; after one that failed, none is, and the result
//     says only whether there was room.
//   - Where there may be debt, a positive cost is made in any case, Shadow or
//     not. Without a whole token before it the group fails all the same, and
//     so it does for a cost of 0.
//   - The costs of charges with one key, and one Shadow, are summed first; see
//     Sums. Each of their results is the answer to the sum. If their Limits
//     differ, the first one's decide, and each result speaks of its own.
//   - The Lease of a charge that is the only one of a call is heeded, unless it
//     is Shadow; see Lease. Others are not.
//   - A charge that is denied changes nothing, except that a bucket from the
//     future is moved to now. So is each bucket of a group that fails, unless
//     the cost is 0. A cost of 0 that finds room changes nothing at all.
//
// The bucket under a key is read and written where at says, which is called
// several times for a key and must answer with the same place. It returns nil
// for a bucket that cannot be read: the others go on as if that had room, and
// the results of its charges are zero, for the caller to set their Err.
func Group(charges []Charge, results []Result, now time.Time, at func(key string) *Bucket) bool {
	if lease := loneLease(charges); lease != nil {
		return chargeLeasing(&charges[0], lease, &results[0], now, at)
	}
	var few [smallCall]Sum
	g := group{charges: charges, results: results, sums: Sums(few[:0], charges), now: now.UnixMicro()}
	passed := g.fits(at)
	for i := range charges {
		if !charges[i].Shadow {
			g.charge(i, passed, at)
		}
	}
	for i := range charges {
		if !charges[i].Shadow {
			g.answer(i, passed, at)
		}
	}
	for i := range charges {
		if charges[i].Shadow {
			g.shadow(i, passed, at)
		}
	}
	return passed
}

type group struct {
	charges []Charge
	results []Result
	sums    []Sum
	now     int64
}

// A lookup is passed beside the group, not in it: what it refers to can then
// stay on its caller's stack.
type lookup = func(key string) *Bucket

// fits says that every bucket of the group has room. Until it is answered, the
// result of a bucket's first charge keeps that of the bucket.
func (g *group) fits(at lookup) bool {
	passed := true
	for i := range g.charges {
		if !g.charges[i].Shadow && g.sums[i].First == i {
			g.results[i].Allowed = g.holds(i, at)
			passed = passed && g.results[i].Allowed
		}
	}
	return passed
}

// holds says that the bucket of charge i has room.
func (g *group) holds(i int, at lookup) bool {
	c := &g.charges[i]
	b := at(c.Key)
	if b == nil {
		return true
	}
	settled := *b
	settled.settle(c.Limits, g.now)
	return settled.holds(c.Limits, g.sums[i].Cost)
}

// made says whether the bucket of charge i is charged: if its group passed and
// there is room, or if it owes in any case.
func (g *group) made(i int, passed bool) bool {
	first := g.sums[i].First
	return (passed && g.results[first].Allowed) || g.charges[first].Limits.Owes(g.sums[i].Cost)
}

// charge charges the bucket of charge i, or denies it, if i is its first.
func (g *group) charge(i int, passed bool, at lookup) {
	c, cost := &g.charges[i], g.sums[i].Cost
	if g.sums[i].First < i || (cost == 0 && g.results[i].Allowed) {
		return
	}
	b, made := at(c.Key), g.made(i, passed)
	switch {
	case b == nil:
	case made && c.Limits.counts(cost):
		b.settle(c.Limits, g.now)
		b.spend(c.Limits, g.now, cost)
	case passed || !c.Shadow:
		b.move(g.now)
	}
}

// answer sets the result of charge i.
func (g *group) answer(i int, passed bool, at lookup) {
	c, first := &g.charges[i], g.sums[i].First
	b := at(c.Key)
	if b == nil {
		g.results[i] = Result{}
		return
	}
	charged := g.results[first].Allowed && g.made(i, passed)
	settled := *b
	settled.settle(c.Limits, g.now)
	g.results[i] = settled.describe(c.Limits, g.sums[i].Cost, charged)
}

// shadow does all for one Shadow charge.
func (g *group) shadow(i int, passed bool, at lookup) {
	if g.sums[i].First == i {
		g.results[i].Allowed = g.holds(i, at)
		g.charge(i, passed, at)
	}
	g.answer(i, passed, at)
}
