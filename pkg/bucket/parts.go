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
	// Interval it is the µs since the period began. It is 0 where Spent is.
	Aux int64
}

// FromParts returns the Bucket, settled at now, that lacks parts[i] under
// limit i of ls. Limits beyond the end of parts lack nothing, and a number that
// its limit cannot have is brought to the nearest that it can.
func FromParts(ls *Limits, now time.Time, parts []Part) Bucket {
	b := blank(ls, now.UnixMicro())
	for i := range ls.list {
		if i < len(parts) {
			b.set(i, ls.list[i].possible(parts[i]))
		}
	}
	return b.kept()
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
// Burst, and drops Aux unless Refill and PerMS are the same and, with Greedy,
// Tokens and Tick too: only then do the next tokens come at the same moments.
//
// Where Tick is 1000, a Greedy limit that is about to be charged or given back
// to starts from full, Spent and Aux 0, if what it lacks has come by now though
// the running tick has not ended: with aux = fraction × Tick + phase,
//
//	Spent × Unit − fraction ≤ phase × (Step div Tick) + phase × (Step mod Tick) div Tick
type Terms struct {
	Name   uint32 // a hash of the limit's name, 0 without one
	Refill Refill
	PerMS  int64 // the period, ms
	Tokens int64 // what comes back in a period; 0 denies every charge
	Burst  int64
	Tick   int64 // µs: time is counted in whole ticks, 1 or 1000
	Unit   int64 // the parts of one token
	Step   int64 // the parts that come with each tick
}

// Terms returns the numbers of limit i. Tick, Unit and Step are of use with
// Greedy only; Step is 0 with a rate of 0.
func (ls *Limits) Terms(i int) Terms {
	l := &ls.list[i]
	return Terms{
		Name: l.name, Refill: l.Refill, PerMS: l.perMS, Tokens: l.Tokens,
		Burst: l.burst, Tick: l.tick, Unit: l.unit, Step: l.step,
	}
}

func (l *limit) possible(p Part) Part {
	p.Spent = min(max(p.Spent, 0), l.burst)
	if p.Spent == 0 {
		return Part{}
	}
	end := l.unit * l.tick
	if l.Refill == Interval {
		end = l.perUS
	}
	p.Aux = min(max(p.Aux, 0), end-1)
	return p
}
