// Package bucket is the arithmetic of token buckets: limits, what was spent
// under one key, and what a charge makes of it.
//
// Everything here is pure. A bucket is a value, the time comes from the
// caller, and nothing is locked, logged or stored. Times are whole
// microseconds since the Unix epoch and every number stays below 2^53, so
// that the same sums come out in Go and in the Lua of a Redis script. The
// package knows nothing of requests, rules, keys or stores.
package bucket

import (
	"slices"
	"time"
)

// A Bucket is what was spent under one key, for each limit of its rule. The
// zero Bucket is full. It is a value: methods return a changed copy and leave
// the receiver as it was, so it is safe for concurrent use as long as nobody
// assigns to it.
type Bucket struct {
	at     int64   // µs: the moment of the last charge
	fullAt int64   // µs: from then on the bucket is full under any limit; whole ms after at
	ls     *Limits // that it was last charged under; nil when full
	// What each limit lacks at the moment at: the first here, the others in
	// more, and in logs those of the limits that slide and the leases. Both
	// are shared by copies and never assigned to.
	few  [2]lack
	more []lack
	logs [][]Entry
}

// A lack is a Part without its Log.
type lack struct{ spent, aux int64 }

// At returns the moment of the last charge and the moment from which b is full
// under any limit, both zero for a full Bucket.
func (b Bucket) At() (charged, full time.Time) {
	if b.Full() {
		return time.Time{}, time.Time{}
	}
	return time.UnixMicro(b.at), time.UnixMicro(b.fullAt)
}

// Full says that b holds nothing worth keeping: it equals a Bucket that was
// never charged. A Bucket becomes so by Settle or by a refund, never by time
// alone.
func (b Bucket) Full() bool { return b.ls == nil }

// Limits returns what b was last charged under, nil for a full Bucket.
func (b Bucket) Limits() *Limits { return b.ls }

// Settle returns b as it stands at now under ls. A b from the future, left by
// a clock that stepped back, is first moved to now with nothing gained. A b
// that was charged under other limits keeps what was spent under the one of
// the same name, else period, else place, up to the most that may be.
func (b Bucket) Settle(ls *Limits, now time.Time) Bucket {
	b.settle(ls, now.UnixMicro())
	return b
}

func (b *Bucket) settle(ls *Limits, at int64) {
	b.move(at)
	switch {
	case b.ls == nil:
	case at >= b.fullAt:
		*b = Bucket{}
	case b.ls != ls || b.more != nil || b.logs != nil:
		if b.ls != ls || b.at != at {
			*b = b.under(ls, at)
		}
	case b.at != at:
		// The usual case: what under does, in place.
		for i := range ls.list {
			b.few[i] = ls.list[i].refill(b.few[i], b.at, at)
		}
		b.at = at
		b.keep()
	}
}

// under is b as it stands later, under other limits.
func (b *Bucket) under(ls *Limits, at int64) Bucket {
	next := blank(ls, at)
	from := ls.match(b.ls)
	for i := range ls.list {
		if j := int(from[i]); j >= 0 {
			l, old := &ls.list[i], &b.ls.list[j]
			if b.logs == nil && l.Refill != Sliding {
				*next.lack(i) = l.refill(l.adopt(old, *b.lack(j)), b.at, at)
				continue
			}
			next.setPart(i, l.settlePart(old, b.part(j), b.at, at))
		}
	}
	next.keep()
	return next
}

// Ahead says that b was last charged after now: the clock has stepped back
// since. A store then keeps Moved(now), even when the charge is denied, so
// that the wait it answered is true.
func (b Bucket) Ahead(now time.Time) bool { return !b.Full() && b.at > now.UnixMicro() }

// Moved returns b with its last charge at now if it was later, and nothing
// gained; otherwise b.
func (b Bucket) Moved(now time.Time) Bucket {
	b.move(now.UnixMicro())
	return b
}

// AsOf returns b with its last charge at now, sooner or later than it was, and
// nothing gained: the same bucket by another clock.
func (b Bucket) AsOf(now time.Time) Bucket {
	b.shift(now.UnixMicro())
	return b
}

func (b *Bucket) move(at int64) {
	if b.at > at {
		b.shift(at)
	}
}

func (b *Bucket) shift(at int64) {
	if b.ls == nil {
		return
	}
	by := b.at - at
	b.at, b.fullAt = at, b.fullAt-by
	b.logs = slices.Clone(b.logs)
	for i := range b.logs {
		b.logs[i] = shifted(b.logs[i], by)
	}
}

// Holds says that every limit of ls has cost tokens in b, which must be
// settled. A cost of 0 or below always finds room, even under a rate of 0.
// With debt a cost of 0 or above asks for one token.
func (b Bucket) Holds(ls *Limits, cost int64) bool { return b.holds(ls, cost) }

func (b *Bucket) holds(ls *Limits, cost int64) bool {
	need := ls.need(cost)
	if need == 0 {
		return true
	}
	for i := range ls.list {
		if need > ls.list[i].burst-b.gone(i) {
			return false
		}
	}
	return true
}

// need returns how many tokens must be there for cost.
func (ls *Limits) need(cost int64) int64 {
	if ls.debt && cost >= 0 {
		return 1
	}
	return max(cost, 0)
}

// Owes says that cost is taken from a bucket under ls whether it has room or
// not, and whatever becomes of the others: there may be debt.
func (ls *Limits) Owes(cost int64) bool { return ls.debt && cost > 0 }

// Spend returns b, settled at now, with cost tokens taken from every limit, or
// all that may be spent if they are fewer; a negative cost gives tokens back,
// up to full. Under a rate of 0 there is nothing to take and nothing is given
// back, lest a bucket come out full once there is a rate again.
func (b Bucket) Spend(ls *Limits, now time.Time, cost int64) Bucket {
	if ls.counts(cost) {
		b.spend(ls, now.UnixMicro(), cost)
	}
	return b
}

func (b *Bucket) spend(ls *Limits, at, cost int64) {
	if b.ls == nil {
		*b = blank(ls, at)
	} else {
		b.more, b.logs = slices.Clone(b.more), slices.Clone(b.logs)
	}
	b.ls = ls
	for i := range ls.list {
		l := &ls.list[i]
		if l.Refill == Sliding {
			b.setPart(i, l.spendPart(b.part(i), at, cost))
			continue
		}
		k := b.lack(i)
		*k = l.spend(*k, cost, b.held(i))
	}
	b.tidy()
	b.keep()
}

// Take charges b with cost tokens at now. A denied charge leaves b as it was,
// but for Moved and where there may be debt; a look leaves it altogether.
// It is Settle, Holds, Spend and Result for a bucket that is charged alone.
func (b Bucket) Take(ls *Limits, now time.Time, cost int64) (Bucket, Result) {
	at, next := now.UnixMicro(), b
	next.settle(ls, at)
	room := next.holds(ls, cost)
	switch {
	case ls.counts(cost) && (room || ls.Owes(cost)):
		next.spend(ls, at, cost)
		return next, next.describe(ls, cost, room)
	case !room:
		b.move(at)
	}
	return b, next.describe(ls, cost, room)
}

// Drained returns a Bucket at now that has no token under any limit of ls, and
// none under way.
func Drained(ls *Limits, now time.Time) Bucket {
	parts := make([]Part, len(ls.list))
	for i := range parts {
		parts[i].Spent = ls.list[i].burst
	}
	return FromParts(ls, now, parts)
}

// blank is a Bucket at the moment at that lacks nothing yet.
func blank(ls *Limits, at int64) Bucket {
	b := Bucket{at: at, ls: ls}
	if n := len(ls.list) - len(b.few); n > 0 {
		b.more = make([]lack, n)
	}
	return b
}

// keep sets the fullAt of b, just made, or empties it if it lacks nothing.
func (b *Bucket) keep() {
	var wait int64
	for i := range b.ls.list {
		wait = max(wait, b.wait(i, b.gone(i)))
	}
	if wait == 0 {
		*b = Bucket{}
		return
	}
	// Whole milliseconds from at take 4 bytes where a store writes them.
	b.fullAt = b.at + ceil(wait, 1000)*1000
}

// wait returns the µs until n tokens are back that are gone from limit i. Where
// that takes more than what is spent, it is at most so long.
func (b *Bucket) wait(i int, n int64) int64 {
	l := &b.ls.list[i]
	switch {
	case n <= 0 || l.Tokens == 0:
		return 0
	case l.Refill == Sliding:
		return leaves(b.logs[i], n) + l.perUS - b.at
	case n > b.lack(i).spent:
		log := b.logs[i]
		return log[len(log)-1].At - b.at + l.wait(lack{spent: n}, b.at, n)
	}
	return l.wait(*b.lack(i), b.at, n)
}

// lack is the place of what limit i lacks, in a b that is not full.
func (b *Bucket) lack(i int) *lack {
	if i < len(b.few) {
		return &b.few[i]
	}
	return &b.more[i-len(b.few)]
}

// spent is what limit i has spent.
func (b *Bucket) spent(i int) int64 {
	if b.ls == nil {
		return 0
	}
	return b.lack(i).spent
}

// gone is what limit i has spent, and what is leased.
func (b *Bucket) gone(i int) int64 {
	if b.logs == nil {
		return b.spent(i)
	}
	return b.spent(i) + b.held(i)
}

// part is what limit i lacks, in a b that is not full.
func (b *Bucket) part(i int) Part {
	k := b.lack(i)
	p := Part{Spent: k.spent, Aux: k.aux}
	if b.logs != nil {
		p.Log = b.logs[i]
	}
	return p
}

// setPart is for a b that is nobody else's yet.
func (b *Bucket) setPart(i int, p Part) {
	*b.lack(i) = lack{p.Spent, p.Aux}
	if p.Log == nil && b.logs == nil {
		return
	}
	if b.logs == nil {
		b.logs = make([][]Entry, len(b.ls.list))
	}
	b.logs[i] = p.Log
}

// tidy drops the logs of b if nothing is in them.
func (b *Bucket) tidy() {
	for _, log := range b.logs {
		if len(log) > 0 {
			return
		}
	}
	b.logs = nil
}
