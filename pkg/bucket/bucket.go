// Package bucket is the arithmetic of token buckets: limits, what was spent
// under one key, and what a charge makes of it.
//
// Everything here is pure. A bucket is a value, the time comes from the
// caller, and nothing is locked, logged or stored. Times are whole
// microseconds since the Unix epoch and every number stays below 2^53, so
// that the same sums come out in Go and in the Lua of a Redis script. The
// package knows nothing of requests, rules, keys or stores.
package bucket

import "time"

// A Bucket is what was spent under one key, for each limit of its rule. The
// zero Bucket is full. It is a value: methods return a changed copy and leave
// the receiver as it was, so it is safe for concurrent use as long as nobody
// assigns to it.
type Bucket struct {
	at     int64 // µs: the moment of the last charge
	fullAt int64 // µs: from then on the bucket is full under any limit
	states []state
}

// A state is what one limit lacks at the bucket's at. It repeats the limit
// that wrote it, so that a changed limit is seen when the state is next read.
type state struct {
	name   uint32 // a hash of the limit's name, 0 without one
	refill Refill
	perMS  int64 // the period, ms
	tokens int64 // the rate's tokens
	spent  int64 // whole tokens taken and not yet back
	aux    int64 // how far the next tokens are on their way; see refill.go
}

// At returns the moment of the last charge and the moment from which b is full
// under any limit, both zero for a full Bucket.
func (b Bucket) At() (charged, full time.Time) {
	if b.states == nil {
		return time.Time{}, time.Time{}
	}
	return time.UnixMicro(b.at), time.UnixMicro(b.fullAt)
}

// Full says that b holds nothing worth keeping: it equals a Bucket that was
// never charged.
func (b Bucket) Full() bool { return b.states == nil }

// Settle returns b as it stands at now under ls. A b from the future, left by
// a clock that stepped back, is first moved to now with nothing gained.
func (b Bucket) Settle(ls *Limits, now time.Time) Bucket {
	at := now.UnixMicro()
	b = b.moved(at)
	if b.states == nil || at >= b.fullAt {
		return Bucket{}
	}
	next := Bucket{at: at, states: ls.adopt(b.states)}
	for i := range next.states {
		next.states[i] = ls.list[i].refill(next.states[i], at-b.at)
	}
	return next.kept(ls)
}

// Ahead says that b was last charged after now: the clock has stepped back
// since. A store then keeps Moved(now), even when the charge is denied.
func (b Bucket) Ahead(now time.Time) bool { return b.states != nil && b.at > now.UnixMicro() }

// Moved returns b with its last charge at now if it was later, and nothing
// gained; otherwise b.
func (b Bucket) Moved(now time.Time) Bucket { return b.moved(now.UnixMicro()) }

func (b Bucket) moved(at int64) Bucket {
	if b.states != nil && b.at > at {
		b.fullAt -= b.at - at
		b.at = at
	}
	return b
}

// Holds says that every limit of ls has cost tokens in b, which must be
// settled. A cost of 0 or below always finds room, except that a rate of 0
// refuses nothing but a look.
func (b Bucket) Holds(ls *Limits, cost int64) bool {
	for i := range ls.list {
		if cost > 0 && cost > ls.list[i].burst-b.spent(i) {
			return false
		}
	}
	return true
}

// Spend returns b, settled at now, with cost tokens taken from every limit; a
// negative cost gives tokens back, up to full. The caller has asked Holds.
func (b Bucket) Spend(ls *Limits, now time.Time, cost int64) Bucket {
	if cost == 0 || (cost < 0 && b.states == nil) {
		return b
	}
	next := Bucket{at: now.UnixMicro(), states: make([]state, len(ls.list))}
	for i := range next.states {
		next.states[i] = ls.list[i].fresh()
		if b.states != nil {
			next.states[i] = b.states[i]
		}
		s := &next.states[i]
		s.spent = max(s.spent+cost, 0)
		if s.spent == 0 {
			s.aux = 0
		}
	}
	return next.kept(ls)
}

// Take charges b with cost tokens at now. A denied charge leaves b as it was,
// but for Moved. It is Settle, Holds, Spend and Result for a bucket that is
// charged alone.
func (b Bucket) Take(ls *Limits, now time.Time, cost int64) (Bucket, Result) {
	settled := b.Settle(ls, now)
	if !settled.Holds(ls, cost) {
		return b.Moved(now), settled.Result(ls, cost, false)
	}
	next := settled.Spend(ls, now, cost)
	if cost == 0 {
		return b, settled.Result(ls, cost, true)
	}
	return next, next.Result(ls, cost, true)
}

func (b Bucket) spent(i int) int64 {
	if b.states == nil {
		return 0
	}
	return b.states[i].spent
}

// full returns when the last of b's limits is full again.
func (b Bucket) full(ls *Limits) int64 {
	var wait int64
	for i := range b.states {
		wait = max(wait, ls.list[i].wait(b.states[i], b.states[i].spent))
	}
	return b.at + wait
}
