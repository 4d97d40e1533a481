package bucket

import "time"

// A Part is what one limit lacks in a settled Bucket: the numbers that a
// script counts in. Both are whole, at least 0 and below 2^53.
type Part struct {
	// Spent is the whole tokens taken and not yet back.
	Spent int64
	// Aux is how far the next tokens are on their way. With Greedy it is
	// fraction × Tick + phase: the fraction of a token, in parts of which a
	// token has Unit, and the µs of the running tick that have passed. With
	// Interval it is the µs since the period began, with Aligned nothing.
	// With Sliding it is the µs since the first charge of the newest entry, at
	// most Slot, which says that the next charge makes an entry of its own.
	// It is 0 where Spent is.
	Aux int64
	// Log is the charges of a Sliding limit, the oldest first, whose Tokens
	// are Spent in sum. No entry is in the future or a period old. With Greedy
	// it is what is leased, beside Spent, by when that ends: all entries are in
	// the future, the first to end comes first.
	Log []Entry
}

// FromParts returns the Bucket, settled at now, that lacks parts[i] under
// limit i of ls. Limits beyond the end of parts lack nothing, and a number that
// its limit cannot have is brought to the nearest that it can.
func FromParts(ls *Limits, now time.Time, parts []Part) Bucket {
	b := blank(ls, now.UnixMicro())
	for i := range ls.list {
		if i < len(parts) {
			b.setPart(i, ls.list[i].possible(parts[i], b.at))
		}
	}
	b.keep()
	return b
}

// Parts returns what each limit of ls lacks in b, which must be settled under
// ls. It is nil for a full Bucket.
func (b Bucket) Parts(ls *Limits) []Part {
	if b.Full() {
		return nil
	}
	parts := make([]Part, len(ls.list))
	for i := range parts {
		parts[i] = b.part(i)
	}
	return parts
}

// Terms are the whole numbers in which one limit is counted, for a script that
// does the arithmetic of this package elsewhere. All are below 2^53.
//
// A script that finds a Part written under other terms keeps Spent, up to
// Most, and drops Aux unless Refill and PerMS are the same and, with Greedy,
// Tokens and Tick too: only then do the next tokens come at the same moments.
// From a Sliding limit to another it keeps the Log: the newest entries, up to
// Burst; under another PerMS without those that are a period old at the last
// charge, and those that follow the first of a slot within Slot merged into
// the last of them. Another mode becomes one entry at the last charge.
//
// Leases go on under another Greedy limit as far as Most allows: what exceeds it
// is taken from Spent, then from the leases that end first. Under another mode
// they are part of Spent. Time passes from one end of a lease to the next: up to
// there Spent comes back, then the tokens of the lease are charged.
//
// Where Tick is 1000, a Greedy limit that is about to be charged or given back
// to starts from full, Spent and Aux 0, if what it lacks has come by now though
// the running tick has not ended: with aux = fraction × Tick + phase,
//
//	Spent × Unit − fraction ≤ phase × (Step div Tick) + phase × (Step mod Tick) div Tick
type Terms struct {
	Name     uint32 // a hash of the limit's name, 0 without one
	Refill   Refill
	Calendar Calendar // with which Starts says when periods begin
	PerMS    int64    // the period, ms
	Tokens   int64    // what comes back in a period; 0 denies every charge
	Burst    int64
	Most     int64 // what may be spent: more than Burst where there may be debt
	Tick     int64 // µs: time is counted in whole ticks, 1 or 1000
	Unit     int64 // the parts of one token
	Step     int64 // the parts that come with each tick
	Slot     int64 // µs: charges that follow the first within it are one entry
}

// Terms returns the numbers of limit i. Tick, Unit and Step are of use with
// Greedy only, Slot with Sliding; Step is 0 with a rate of 0.
func (ls *Limits) Terms(i int) Terms {
	l := &ls.list[i]
	return Terms{
		Name: l.name, Refill: l.Refill, Calendar: l.Calendar, PerMS: l.perMS, Tokens: l.Tokens,
		Burst: l.burst, Most: l.most, Tick: l.tick, Unit: l.unit, Step: l.step, Slot: l.slot,
	}
}

func (l *limit) possible(p Part, at int64) Part {
	if l.Refill == Greedy && p.Log != nil {
		return l.leased(p, at)
	}
	p.Spent = min(max(p.Spent, 0), l.most)
	if p.Spent == 0 {
		return Part{}
	}
	end := l.unit * l.tick
	switch l.Refill {
	case Interval:
		end = l.perUS
	case Aligned:
		end = 1
	case Sliding:
		return l.logged(p, at)
	}
	return Part{Spent: p.Spent, Aux: min(max(p.Aux, 0), end-1)}
}
