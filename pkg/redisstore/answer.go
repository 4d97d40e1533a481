package redisstore

import (
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// What the script answers for a charge.
const (
	noRoom = iota
	charged
	room // but not charged
	foreign

	withLeases = 8 // besides

	together = 16 // and how many of the groups that ask the same were charged
)

// isStale says that r is the answer of a script that did nothing, because the
// running period of a calendar was another.
func (c *call) isStale(r reply) bool { return c.sets.calendars && len(r.numbers) == 1 }

// read sets the results from the script's reply, and tells of the buckets.
func (c *call) read(r reply, seen func(string, bucket.Bucket)) error {
	if len(r.numbers) == 0 {
		return errReply
	}
	c.now, c.stored = r.numbers[0], r.texts
	rest := numbers(r.numbers[1:])
	for first := 0; first < len(c.asks); {
		end := c.end(first)
		if !c.readGroups(first, end, &rest, seen) {
			return errReply
		}
		first = end
	}
	if len(rest) > 0 {
		return errReply
	}
	for i := range c.groups {
		c.groups[i].share()
	}
	return nil
}

// end returns where the asks of the group end that begin with first.
func (c *call) end(first int) int {
	end := first + 1
	for end < len(c.asks) && c.asks[end].group == c.asks[first].group {
		end++
	}
	return end
}

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
	for n := range int64(times) {
		if n < made {
			part[0].Spent += a.cost
		}
		b := bucket.FromParts(ls, time.UnixMicro(c.now), part[:])
		c.groups[g].results[a.charge] = b.Result(ls, a.cost, n < made)
		g = c.next[g]
	}
	if seen != nil && c.keys.last[a.key-1] == i {
		seen(c.groups[a.group].charges[a.charge].Key, bucket.FromParts(ls, time.UnixMicro(c.now), last[:]))
	}
	return true
}

// readAsk sets the result of ask i, of g, from the head of reply, and says
// whether it is long enough.
func (c *call) readAsk(i int, g *group, reply *numbers, seen func(string, bucket.Bucket)) bool {
	a := &c.asks[i]
	ls := g.charges[a.charge].Limits
	status, ok := reply.next()
	if status == foreign {
		g.results[a.charge] = bucket.Result{Err: failure("bucket", errForeign)}
		return ok
	}
	var few [bucket.MaxLimits]bucket.Part
	parts := few[:ls.Len()]
	leased := status >= withLeases
	status %= withLeases
	if !ok || !reply.parts(ls, parts, c.now) || leased && !reply.leases(parts, c.now) || !c.readLease(g, reply) {
		return false
	}
	a.made = status == charged
	c.denied = c.denied || (status == noRoom && !g.charges[a.charge].Shadow)
	b := bucket.FromParts(ls, time.UnixMicro(c.now), parts)
	g.results[a.charge] = b.Result(ls, a.cost, c.asks[a.first].made)
	if seen != nil && c.keys.last[a.key-1] == i {
		seen(g.charges[a.charge].Key, b)
	}
	return true
}

// readLease sets what was leased for g, if that was asked, and says whether it
// was there.
func (c *call) readLease(g *group, reply *numbers) bool {
	lease := g.lease()
	if lease == nil {
		return true
	}
	granted, ok := reply.next()
	if lease.Granted, lease.GrantEnds = granted, 0; granted > 0 {
		lease.GrantEnds = c.now + lease.For.Microseconds()
	}
	return ok
}

// numbers are what is left of a reply.
type numbers []int64

func (n *numbers) next() (int64, bool) {
	if len(*n) == 0 {
		return 0, false
	}
	first := (*n)[0]
	*n = (*n)[1:]
	return first, true
}

// parts reads what each limit lacks, and says whether that was there.
func (n *numbers) parts(ls *bucket.Limits, parts []bucket.Part, now int64) bool {
	if len(*n) < 2*len(parts) {
		return false
	}
	for i := range parts {
		parts[i] = bucket.Part{Spent: (*n)[2*i], Aux: (*n)[2*i+1]}
	}
	*n = (*n)[2*len(parts):]
	for i := range parts {
		if ls.At(i).Refill == bucket.Sliding && !n.log(&parts[i], now) {
			return false
		}
	}
	return true
}

// leases reads what is leased, as if all of it ended with the last, and says
// whether it was there. No result tells the difference.
func (n *numbers) leases(parts []bucket.Part, now int64) bool {
	if len(*n) < 3 || (*n)[0] < 1 || (*n)[0] > int64(len(parts)) {
		return false
	}
	parts[(*n)[0]-1].Log = []bucket.Entry{{At: now + (*n)[2], Tokens: (*n)[1]}}
	*n = (*n)[3:]
	return true
}

// log reads the log of p, and says whether it was there.
func (n *numbers) log(p *bucket.Part, now int64) bool {
	entries, ok := n.next()
	if !ok || entries < 0 || entries > int64(len(*n)/2) {
		return false
	}
	for i := range entries {
		p.Log = append(p.Log, bucket.Entry{At: now - (*n)[2*i], Tokens: (*n)[2*i+1]})
	}
	*n = (*n)[2*entries:]
	return true
}

// share gives a charge that was summed into an earlier one the same result.
func (g *group) share() {
	for i := range g.charges {
		first := g.sums[i].First
		if first < i && g.charges[first].Limits == g.charges[i].Limits {
			g.results[i] = g.results[first]
		}
	}
}
