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
func (c *call) isStale(r reply) bool { return c.sets.calendars && len(r.numbers) == 1 && r.dated() }

// dated says that r begins with a time: the scripts count in whole numbers
// below 2^53. Who looked for a calendar's period at another would not end.
func (r reply) dated() bool {
	return len(r.numbers) > 0 && r.numbers[0] >= 0 && r.numbers[0] < 1<<53
}

// read sets the results from the script's reply, and tells of the buckets.
func (c *call) read(r reply, seen func(string, bucket.Bucket)) error {
	if !r.dated() {
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

// end returns the place behind the asks of a group, of which first is the first.
func (c *call) end(first int) int {
	end := first + 1
	for end < len(c.asks) && c.asks[end].group == c.asks[first].group {
		end++
	}
	return end
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
	granted, _ := reply.next()
	returned, ok := reply.next()
	lease.Returned = returned
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
