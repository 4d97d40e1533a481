package lease

import (
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// hot is how many charges within the time of one lease make a key hot.
const hot = 8

// A Holder decides, charge by charge, what to do about one key. It is pure: it
// reads no clock, asks nobody and locks nothing. Its times are of the caller's
// own clock, which must never be set: only how far they are apart counts. The
// zero Holder holds nothing.
type Holder struct {
	limits *bucket.Limits // of the lease
	// What is held. Told is when the lease ends by the store's clock, as it
	// said at the time answered, after a call that took so long; lasts is the
	// time that it is for. From stops on it is not spent any more.
	granted, spent  int64
	told            int64
	answered, stops time.Time
	lasts, took     time.Duration
	result          bucket.Result // of the charge that it came with

	asking bool // a Lease is on its way
	begun  time.Time
	rests  time.Time // none is asked for before: there was nothing to lease, or no answer

	// How many charges came since a time, and how many in the one before it.
	since         time.Time
	count, before int
}

// A Way is what a Holder would have done with a charge.
type Way uint8

// The ways. The zero value asks the store as if there were no leases.
const (
	// Plain asks the store.
	Plain Way = iota
	// Spend does not: the charge is made, and Choice.Result is its result.
	Spend
	// Ask asks the store with Choice.Lease, and tells the Holder what comes of it.
	Ask
)

// A Choice is a Way, with what it takes.
type Choice struct {
	Way    Way
	Result bucket.Result
	Lease  bucket.Lease
}

// Decide says what to do with a charge of cost, which is not 0, under ls, of
// which tokens are to be leased.
func (h *Holder) Decide(now time.Time, ls *bucket.Limits, cost int64) Choice {
	tokens, lasts := ls.Lease()
	h.heat(now, lasts)
	held := h.granted > 0
	switch {
	case held && cost > 0 && cost <= h.granted-h.spent && now.Before(h.stops) && ls.Same(h.limits):
		h.spent += cost
		return Choice{Way: Spend, Result: h.local(now)}
	case h.asking || cost > tokens:
		return Choice{}
	case held && (cost < 0 || !ls.Same(h.limits)):
		h.cool() // what follows may be of the old limits again
		return h.ask(now, ls, bucket.Lease{})
	case cost > 0 && ls.Leasable() && max(h.count, h.before) >= hot && !now.Before(h.rests):
		return h.ask(now, ls, bucket.Lease{Want: tokens, For: lasts})
	}
	return Choice{}
}

// ask has the store told of what is held, and asked for l.
func (h *Holder) ask(now time.Time, ls *bucket.Limits, l bucket.Lease) Choice {
	over := h.End(now)
	over.Want, over.For = l.Want, l.For
	h.asking, h.begun, h.limits = true, now, ls
	return Choice{Way: Ask, Lease: over}
}

// heat counts a charge.
func (h *Holder) heat(now time.Time, lasts time.Duration) {
	switch passed := now.Sub(h.since); {
	case passed >= 2*lasts:
		h.since, h.count, h.before = now, 0, 0
	case passed >= lasts:
		h.since, h.count, h.before = now, 0, h.count
	}
	h.count++
}

func (h *Holder) cool() { h.count, h.before = 0, 0 }

// local is the result of a charge that the lease has paid.
func (h *Holder) local(now time.Time) bucket.Result {
	r := h.result
	r.Remaining = max(r.Remaining, h.granted) - h.spent
	r.FullIn = max(r.FullIn-now.Sub(h.answered).Truncate(time.Microsecond), 0)
	return r
}

// Answered tells h what came of its Ask, at now: l, as the store has set it,
// and the charge's result.
func (h *Holder) Answered(now time.Time, l *bucket.Lease, r bucket.Result) {
	if h.asking = false; l.Granted <= 0 {
		h.rests = now.Add(l.For / 8)
		return
	}
	h.granted, h.spent, h.told, h.lasts = l.Granted, 0, l.GrantEnds, l.For
	h.answered, h.stops, h.took = now, h.begun.Add(l.For-early(l.For)), now.Sub(h.begun)
	h.result = r
}

// Failed tells h at now that its Ask has no answer. What it asked for may have
// been leased; that is spent when it ends. No other is asked for before, so that
// answers lost in a row cost one lease.
func (h *Holder) Failed(now time.Time) {
	_, lasts := h.limits.Lease()
	h.asking, h.rests = false, now.Add(lasts)
}

// End returns a Lease that gives back what is held, which is not spent any
// more; the zero Lease if there is nothing to tell of. It is good for a charge
// that is made soon.
func (h *Holder) End(now time.Time) bucket.Lease {
	if h.granted == 0 {
		return bucket.Lease{}
	}
	slack := drift(h.lasts).Microseconds()
	l := bucket.Lease{
		Back: h.granted, Spent: h.spent, Ends: h.told - slack,
		Since: h.told - h.lasts.Microseconds() + now.Sub(h.answered).Microseconds() - slack,
		// What Since does not see: as long as that answer and this question take.
		Sooner: 2 * h.took.Microseconds(),
	}
	h.granted, h.spent = 0, 0
	return l
}

// Held returns how many tokens were granted that are held, 0 if none are, under
// which limits, and when h stops to spend them.
func (h *Holder) Held() (granted int64, ls *bucket.Limits, stops time.Time) {
	return h.granted, h.limits, h.stops
}

// Idle says that h may be forgotten: nothing is held or asked for, and the key
// is not hot.
func (h *Holder) Idle(now time.Time, lasts time.Duration) bool {
	return h.granted == 0 && !h.asking && (now.Sub(h.since) >= lasts || max(h.count, h.before) < hot)
}

// drift is how far two clocks may be apart after d.
func drift(d time.Duration) time.Duration { return max(time.Millisecond, d/64) }

// early is how long before a lease of d ends it is spent no more, so that what
// is left is given back in time.
func early(d time.Duration) time.Duration { return max(2*time.Millisecond, d/8) }
