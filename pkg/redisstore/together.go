package redisstore

import (
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// joins has group g made together with the one that asked for its buckets last,
// and says whether it has. Both must ask the same: then the script charges them
// at once, and nobody can tell.
func (c *call) joins(g int) bool {
	if !c.groups[g].plain() {
		return false
	}
	first, found := c.lastAsk(c.groups[g].charges[0].Key)
	if !found || !c.asksSame(first, g) {
		return false
	}
	a := &c.asks[first]
	c.next[a.last] = g
	a.last = g
	a.times++
	c.packed[(first+1)*askSize-1] = byte(a.times) // where pack wrote 1
	return true
}

// plain says that g only takes tokens, each bucket's under one limit and once,
// so that what comes of it follows from what comes of others that do the same
// at the same moment.
func (g *group) plain() bool {
	for i := range g.charges {
		charge := &g.charges[i]
		if charge.Shadow || charge.Lease != nil || charge.Cost <= 0 || g.sums[i].First != i || !repeats(charge.Limits) {
			return false
		}
	}
	return g.flags == 0 && len(g.charges) > 0
}

// repeats says that charges under ls at one moment that follow each other
// change nothing but how much is spent. In ticks of a millisecond, each may
// find the bucket full again.
func repeats(ls *bucket.Limits) bool {
	if ls.Len() > 1 || ls.Debt() {
		return false
	}
	mode := modeOf(ls.Terms(0))
	return mode != sliding && mode != greedyMS
}

// lastAsk returns the last ask for the bucket under key.
func (c *call) lastAsk(key string) (int, bool) {
	place, found := c.keys.places[key]
	if !found {
		return 0, false
	}
	return c.keys.last[place-1], true
}

// asksSame says that the asks from first are all those of a group that asks what
// group g does, and that none after them is for their buckets.
func (c *call) asksSame(first, g int) bool {
	a, charges := &c.asks[first], c.groups[g].charges
	other := &c.groups[a.group]
	if a.charge > 0 || a.times == maxTimes || len(other.charges) != len(charges) || !other.plain() {
		return false
	}
	for i := range charges {
		at, found := c.lastAsk(charges[i].Key)
		if !found || at != first+i || other.charges[i].Limits != charges[i].Limits || c.asks[at].cost != c.groups[g].sums[i].Cost {
			return false
		}
	}
	return true
}

// maxTimes is what one byte holds.
const maxTimes = 255

// readGroups sets the results of the asks of one group, from first to before
// end, and of those that are made together with it.
func (c *call) readGroups(first, end int, reply *numbers, seen func(string, bucket.Bucket)) bool {
	times := c.asks[first].times
	g := c.asks[first].group
	if times > 1 && len(*reply) > 0 && (*reply)[0] >= together {
		for i := first; i < end; i++ {
			if !c.readTogether(i, reply, times, seen) {
				return false
			}
		}
		return true
	}
	for range times {
		for i := first; i < end; i++ {
			if !c.readAsk(i, &c.groups[g], reply, seen) {
				return false
			}
		}
		g = c.next[g]
	}
	return true
}

// readTogether sets the results of ask i in as many groups as are made
// together.
func (c *call) readTogether(i int, reply *numbers, times int, seen func(string, bucket.Bucket)) bool {
	a := &c.asks[i]
	ls := c.groups[a.group].charges[a.charge].Limits
	status, ok := reply.next()
	made := status - together
	var last [1]bucket.Part
	if !ok || made < 0 || made > int64(times) || !reply.parts(ls, last[:], c.now) || last[0].Spent < made*a.cost {
		return false
	}
	part, g := last, a.group
	part[0].Spent -= made * a.cost
	var b bucket.Bucket
	for n := range int64(times) {
		if n < made {
			part[0].Spent += a.cost
		}
		b = bucket.FromParts(ls, time.UnixMicro(c.now), part[:])
		c.groups[g].results[a.charge] = b.Result(ls, a.cost, n < made)
		g = c.next[g]
	}
	if seen != nil && c.keys.last[a.key-1] == i {
		seen(c.groups[a.group].charges[a.charge].Key, b) // as the last of them left it
	}
	return true
}
