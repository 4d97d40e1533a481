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
//   - The costs of charges with one key, and one Shadow, are summed first; see
//     Total. Each of their results is the answer to the sum. If their Limits
//     differ, the first one's decide, and each result speaks of its own.
//   - A charge that is denied changes nothing, except that a bucket from the
//     future is moved to now. So is each bucket of a group that fails, unless
//     the cost is 0. A cost of 0 changes nothing at all.
//
// The bucket under a key is read and written where at says, which is called
// several times for a key and must answer with the same place.
func Group(charges []Charge, results []Result, now time.Time, at func(key string) *Bucket) bool {
	g := group{charges: charges, results: results, now: now}
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

// Total returns the summed cost of the charges that have the key and Shadow of
// charge i, and the place of the first of them. Each cost and the sum so far
// is brought within ±2^53: more than any burst, and still exact.
func Total(charges []Charge, i int) (cost int64, first int) {
	first = i
	for j := range charges {
		if charges[j].Key != charges[i].Key || charges[j].Shadow != charges[i].Shadow {
			continue
		}
		first = min(first, j)
		cost = clamp(cost + clamp(charges[j].Cost))
	}
	return cost, first
}

func clamp(cost int64) int64 { return max(min(cost, exact), -exact) }

type group struct {
	charges []Charge
	results []Result
	now     time.Time
}

// A lookup is passed beside the group, not in it: what it refers to can then
// stay on its caller's stack.
type lookup = func(key string) *Bucket

// fits says that every bucket of the group has room.
func (g *group) fits(at lookup) bool {
	for i := range g.charges {
		if !g.charges[i].Shadow && !g.holds(i, at) {
			return false
		}
	}
	return true
}

// holds says that the bucket of charge i has room, if i is its first charge.
func (g *group) holds(i int, at lookup) bool {
	c := &g.charges[i]
	cost, first := Total(g.charges, i)
	return first < i || at(c.Key).Settle(c.Limits, g.now).Holds(c.Limits, cost)
}

// charge charges the bucket of charge i, or denies it, if i is its first.
func (g *group) charge(i int, made bool, at lookup) {
	c := &g.charges[i]
	cost, first := Total(g.charges, i)
	if first < i || cost == 0 {
		return
	}
	b := at(c.Key)
	if made && c.Limits.counts(cost) {
		*b = b.Settle(c.Limits, g.now).Spend(c.Limits, g.now, cost)
		return
	}
	*b = b.Moved(g.now)
}

// answer sets the result of charge i.
func (g *group) answer(i int, made bool, at lookup) {
	c := &g.charges[i]
	cost, _ := Total(g.charges, i)
	g.results[i] = at(c.Key).Settle(c.Limits, g.now).Result(c.Limits, cost, made)
}

// shadow does all for one Shadow charge.
func (g *group) shadow(i int, passed bool, at lookup) {
	_, first := Total(g.charges, i)
	made := passed && g.holds(i, at)
	if first < i {
		made = passed && g.results[first].Allowed
	}
	if passed {
		g.charge(i, made, at)
	}
	g.answer(i, made, at)
}
