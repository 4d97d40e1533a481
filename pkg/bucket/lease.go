package bucket

import (
	"cmp"
	"slices"
	"time"
)

const (
	// LongestLease is the most that tokens are leased for.
	LongestLease = time.Hour
	// leaseParts of the time that tokens are leased for is how much later than
	// that their lease may end, so that a bucket has few ends to remember.
	leaseParts = 16
	// maxLeases bounds the ends that a bucket remembers. Beyond it nothing is
	// leased.
	maxLeases = 64
)

// A Lease takes tokens of a bucket ahead of the charges that they are for, and
// gives back what is left. Until their lease ends or they are given back,
// leased tokens are neither there nor do they come back: only what is spent
// does. So however they are spent while they are leased, and whatever becomes
// of who has them, no more is admitted than the limit allows.
//
// The tokens under Back are given back first, whatever becomes of the charge;
// then the charge is made, even of a cost of 0; and if it passed with a cost
// above 0, tokens are leased. For that the Limits must be one that is Greedy,
// without debt and with a rate above 0. What is leased stays so under other
// Limits; under another mode it counts as spent at the last charge.
//
// When a lease ends, its tokens are spent, all of them. It may end up to a 16th
// of its time later than told. If the clock is set back, it ends later by so
// much; if it is set forward, that is time passed, as for all else: what is
// spent of the lease thereafter comes on top.
type Lease struct {
	// Want is how many tokens are to be leased, as far as there are so many. 0
	// is none.
	Want int64
	// For is how long, in whole µs up to LongestLease.
	For time.Duration

	// Back is the tokens of a lease that is over. Spent of them have been
	// spent, from 0 to all.
	Back, Spent int64
	// Ends is when that lease was told to end, in µs since the Unix epoch, or a
	// little sooner. From then on it has ended by itself, and nothing is given
	// back. So it is before Since, the least that the clock must have come to:
	// it has been set back, and which tokens these are cannot be known.
	Since, Ends int64
	// Sooner is how many µs before Ends that lease may end in the bucket: the
	// ends in it go back with a clock that is set back, and a step of so much is
	// too small for Since to show it.
	Sooner int64

	// Granted is how many tokens are leased now, and GrantEnds until when by
	// the store's clock; Returned is how many of Back were given back, those
	// spent included: none where it is too late. They are set by whoever makes
	// the charge.
	Granted, GrantEnds, Returned int64
}

// Leasable says that tokens under ls can be leased.
func (ls *Limits) Leasable() bool {
	return len(ls.list) == 1 && ls.list[0].Refill == Greedy && !ls.debt && !ls.closed
}

// Leasing returns limits that count as ls do, whose tokens are to be leased for
// d at a time: so many ten-thousandths of the burst, but one at least.
func (ls *Limits) Leasing(share int64, d time.Duration) *Limits {
	leasing := *ls
	burst := ls.list[0].burst
	leasing.lease = leaseTerms{max(burst/10_000*share+burst%10_000*share/10_000, 1), d}
	return &leasing
}

// Lease returns how many tokens are to be leased at a time, and for how long: 0
// where none are.
func (ls *Limits) Lease() (tokens int64, d time.Duration) { return ls.lease.tokens, ls.lease.d }

type leaseTerms struct {
	tokens int64
	d      time.Duration
}

// Charge is Take of c, whose Lease is heeded. Key and Shadow are not.
func (b Bucket) Charge(c *Charge, now time.Time) (Bucket, Result) {
	if c.Lease == nil {
		return b.Take(c.Limits, now, c.Cost)
	}
	return b, b.charge(c, c.Lease, now.UnixMicro())
}

// loneLease returns the Lease that is heeded in a call, or nil.
func loneLease(charges []Charge) *Lease {
	if len(charges) != 1 || charges[0].Shadow {
		return nil
	}
	return charges[0].Lease
}

// chargeLeasing is Group of c alone.
func chargeLeasing(c *Charge, l *Lease, r *Result, now time.Time, at lookup) bool {
	b := at(c.Key)
	if b == nil {
		*r, l.Granted, l.GrantEnds, l.Returned = Result{}, 0, 0, 0
		return true
	}
	*r = b.charge(c, l, now.UnixMicro())
	return r.Allowed
}

func (b *Bucket) charge(c *Charge, l *Lease, at int64) Result {
	ls, next, cost := c.Limits, *b, clamp(c.Cost)
	next.settle(ls, at)
	l.Granted, l.GrantEnds, l.Returned = 0, 0, next.report(ls, l, at)
	room := next.holds(ls, cost)
	made := ls.counts(cost) && (room || ls.Owes(cost))
	if made {
		next.spend(ls, at, cost)
	}
	if made && room && cost > 0 && ls.Leasable() {
		next.grant(ls, l, at)
	}
	switch {
	case made || l.Returned > 0:
		*b = next
	case !room:
		b.move(at)
	}
	return next.describe(ls, cost, room)
}

// report gives back to b, which is settled under ls, what l says, and returns
// how many tokens.
func (b *Bucket) report(ls *Limits, l *Lease, at int64) int64 {
	if b.logs == nil || ls.closed || l.Back <= 0 || at < l.Since || at >= l.Ends {
		return 0
	}
	for i := range ls.list {
		if ls.list[i].Refill != Greedy {
			continue
		}
		p, back := b.part(i).handBack(l)
		if back == 0 {
			continue
		}
		k := ls.list[i].spend(lack{p.Spent, p.Aux}, l.spentOf(back), sum(p.Log))
		b.more = slices.Clone(b.more)
		b.relog(i, Part{k.spent, k.aux, p.Log})
		b.keep()
		return back
	}
	return 0
}

// spentOf is how many of so many tokens that are given back have been spent.
func (l *Lease) spentOf(back int64) int64 { return min(max(l.Spent, 0), back) }

// handBack returns p with tokens of l taken out of its leases, and how many. Of
// those that end no sooner than l may, the first to end give theirs: taken of a
// later one, which another may hold, they would count as leased only until the
// first ends, and could be spent after that.
func (p Part) handBack(l *Lease) (Part, int64) {
	log, rest := make([]Entry, 0, len(p.Log)), l.Back
	for _, e := range p.Log {
		if e.At >= l.Ends-max(l.Sooner, 0) {
			n := min(rest, e.Tokens)
			rest, e.Tokens = rest-n, e.Tokens-n
		}
		if e.Tokens > 0 {
			log = append(log, e)
		}
	}
	p.Log = log
	return p, l.Back - rest
}

// grant leases tokens of b, just charged under ls, to l.
func (b *Bucket) grant(ls *Limits, l *Lease, at int64) {
	us, n := l.For.Microseconds(), min(l.Want, ls.list[0].burst-b.gone(0))
	if us <= 0 || us > LongestLease.Microseconds() || n <= 0 {
		return
	}
	p := b.part(0).lease(Entry{at + us, n}, ceil(us, leaseParts))
	if len(p.Log) > maxLeases {
		return
	}
	b.relog(0, p)
	b.keep()
	l.Granted, l.GrantEnds = n, at+us
}

// lease returns p with e leased. What ends in the same cell of the grid ends at
// the last of it.
func (p Part) lease(e Entry, grid int64) Part {
	cell, log := quotient(e.At, grid), make([]Entry, 0, len(p.Log)+1)
	for _, other := range p.Log {
		if quotient(other.At, grid) == cell {
			e = Entry{max(e.At, other.At), e.Tokens + other.Tokens}
			continue
		}
		log = append(log, other)
	}
	place, _ := slices.BinarySearchFunc(log, e, func(a, b Entry) int { return cmp.Compare(a.At, b.At) })
	p.Log = slices.Insert(log, place, e)
	return p
}

// relog sets part i of b, with another log of leases.
func (b *Bucket) relog(i int, p Part) {
	logs := make([][]Entry, len(b.ls.list))
	copy(logs, b.logs)
	b.logs = logs
	b.setPart(i, p)
	b.tidy()
}

// held is what is leased of limit i.
func (b *Bucket) held(i int) int64 {
	if b.logs == nil || b.ls.list[i].Refill != Greedy {
		return 0
	}
	return sum(b.logs[i])
}

func sum(log []Entry) (tokens int64) {
	for i := range log {
		tokens += log[i].Tokens
	}
	return tokens
}

// settlePart returns p, written under old at the moment at, as it stands under l
// at now.
func (l *limit) settlePart(old *limit, p Part, at, now int64) Part {
	if l.Refill == Sliding {
		return l.slide(l.adoptPart(old, p, at), at, now)
	}
	if old.Refill == Greedy && len(p.Log) > 0 {
		if l.Refill == Greedy {
			return l.lapse(l.adoptLeases(old, p), at, now)
		}
		p.Spent += sum(p.Log)
	}
	k := l.refill(l.adopt(old, lack{p.Spent, p.Aux}), at, now)
	return Part{Spent: k.spent, Aux: k.aux}
}

// adoptLeases returns p, written under old, under l, which is Greedy too: with
// what is leased, as far as that may be.
func (l *limit) adoptLeases(old *limit, p Part) Part {
	k, held := l.adopt(old, lack{p.Spent, p.Aux}), sum(p.Log)
	if held >= l.most {
		return Part{Log: without(p.Log, held-l.most)}
	}
	if k.spent > l.most-held {
		k.spent = l.most - held
	}
	return Part{k.spent, k.aux, p.Log}
}

// lapse returns p, which stands at the moment at, as it stands at now: what was
// leased until then is spent, from when it ended.
func (l *limit) lapse(p Part, at, now int64) Part {
	k, held := lack{p.Spent, p.Aux}, sum(p.Log)
	for len(p.Log) > 0 && p.Log[0].At <= now {
		ends := p.Log[0]
		held -= ends.Tokens
		k = l.spend(l.refill(k, at, ends.At), ends.Tokens, held)
		p.Log, at = p.Log[1:], ends.At
	}
	k = l.refill(k, at, now)
	return Part{k.spent, k.aux, without(p.Log, 0)}
}

// leased returns p, at the moment at, with leases that l can have. If it cannot,
// they are spent.
func (l *limit) leased(p Part, at int64) Part {
	last, held, bare := at, int64(0), Part{Spent: p.Spent, Aux: p.Aux}
	for _, e := range p.Log {
		if e.At <= last || e.At > at+LongestLease.Microseconds() || e.Tokens <= 0 || e.Tokens > l.most-held {
			bare.Spent = l.most
			return l.possible(bare, at)
		}
		last, held = e.At, held+e.Tokens
	}
	bare = l.possible(bare, at)
	if bare.Spent = min(bare.Spent, l.most-held); bare.Spent == 0 {
		bare.Aux = 0
	}
	if held > 0 {
		bare.Log = p.Log
	}
	return bare
}
