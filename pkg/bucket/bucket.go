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
	few    [2]Part // what the first limits lack at the moment at
	more   []Part  // what the others lack: shared by copies, never assigned to
}

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

// Settle returns b as it stands at now under ls. A b from the future, left by
// a clock that stepped back, is first moved to now with nothing gained. A b
// that was charged under other limits keeps what was spent under the one of
// the same name, else period, else place, up to the new burst.
func (b Bucket) Settle(ls *Limits, now time.Time) Bucket {
	at := now.UnixMicro()
	b = b.moved(at)
	if b.Full() || at >= b.fullAt {
		return Bucket{}
	}
	if b.at == at && b.ls == ls {
		return b
	}
	next := blank(ls, at)
	from := ls.match(b.ls)
	for i := range ls.list {
		if j := from[i]; j >= 0 {
			l := &ls.list[i]
			next.set(i, l.refill(l.adopt(&b.ls.list[j], b.part(int(j)), b.at), b.at, at))
		}
	}
	return next.kept()
}

// Ahead says that b was last charged after now: the clock has stepped back
// since. A store then keeps Moved(now), even when the charge is denied, so
// that the wait it answered is true.
func (b Bucket) Ahead(now time.Time) bool { return !b.Full() && b.at > now.UnixMicro() }

// Moved returns b with its last charge at now if it was later, and nothing
// gained; otherwise b.
func (b Bucket) Moved(now time.Time) Bucket { return b.moved(now.UnixMicro()) }

func (b Bucket) moved(at int64) Bucket {
	if b.Full() || b.at <= at {
		return b
	}
	by := b.at - at
	b.at, b.fullAt = at, b.fullAt-by
	b.more = slices.Clone(b.more)
	for i := range b.ls.list {
		if p := b.part(i); p.Log != nil {
			b.set(i, p.shifted(by))
		}
	}
	return b
}

// Holds says that every limit of ls has cost tokens in b, which must be
// settled. A cost of 0 or below always finds room, even under a rate of 0.
// With debt a cost of 0 or above asks for one token.
func (b Bucket) Holds(ls *Limits, cost int64) bool {
	need := ls.need(cost)
	for i := range ls.list {
		if need > 0 && need > ls.list[i].burst-b.part(i).Spent {
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
	if !ls.counts(cost) {
		return b
	}
	next := blank(ls, now.UnixMicro())
	for i := range ls.list {
		next.set(i, ls.list[i].spend(b.part(i), next.at, cost))
	}
	return next.kept()
}

// Take charges b with cost tokens at now. A denied charge leaves b as it was,
// but for Moved and where there may be debt; a look leaves it altogether.
// It is Settle, Holds, Spend and Result for a bucket that is charged alone.
func (b Bucket) Take(ls *Limits, now time.Time, cost int64) (Bucket, Result) {
	settled := b.Settle(ls, now)
	room := settled.Holds(ls, cost)
	switch {
	case ls.counts(cost) && (room || ls.Owes(cost)):
		next := settled.Spend(ls, now, cost)
		return next, next.Result(ls, cost, room)
	case room:
		return b, settled.Result(ls, cost, room)
	default:
		return b.Moved(now), settled.Result(ls, cost, false)
	}
}

// blank is a Bucket at the moment at that lacks nothing yet.
func blank(ls *Limits, at int64) Bucket {
	b := Bucket{at: at, ls: ls}
	if n := len(ls.list) - len(b.few); n > 0 {
		b.more = make([]Part, n)
	}
	return b
}

// kept returns b, just made, with its fullAt; or the zero Bucket if it lacks
// nothing.
func (b Bucket) kept() Bucket {
	var wait int64
	for i := range b.ls.list {
		p := b.part(i)
		wait = max(wait, b.ls.list[i].wait(p, b.at, p.Spent))
	}
	if wait == 0 {
		return Bucket{}
	}
	// Whole milliseconds from at take 4 bytes where a store writes them.
	b.fullAt = b.at + ceil(wait, 1000)*1000
	return b
}

// part is what limit i lacks: nothing in a full b.
func (b *Bucket) part(i int) Part {
	switch {
	case b.ls == nil:
		return Part{}
	case i < len(b.few):
		return b.few[i]
	default:
		return b.more[i-len(b.few)]
	}
}

// set is for a b that blank has just made.
func (b *Bucket) set(i int, p Part) {
	if i < len(b.few) {
		b.few[i] = p
		return
	}
	b.more[i-len(b.few)] = p
}

// Drained returns a Bucket at now that has no token under any limit of ls, and
// none under way.
func Drained(ls *Limits, now time.Time) Bucket {
	b := blank(ls, now.UnixMicro())
	for i := range ls.list {
		p := Part{Spent: ls.list[i].burst}
		b.set(i, ls.list[i].possible(p, b.at))
	}
	return b.kept()
}
