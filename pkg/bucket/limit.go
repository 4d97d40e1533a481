package bucket

import (
	"fmt"
	"time"
)

// Refill says how tokens come back.
type Refill uint8

// The refill modes.
const (
	// Greedy brings tokens back continuously: a whole token is there the
	// moment it has accrued.
	Greedy Refill = iota
	// Interval brings the rate's tokens back at the end of each period, up to
	// the burst. A period begins with the charge that first takes from a full
	// bucket.
	Interval
	// Aligned brings the rate's tokens back, up to the burst, at the multiples
	// of the period since the Unix epoch or, with a Zone, where its calendar
	// has a new period begin.
	Aligned
	// Sliding brings tokens back as the charges that took them leave the last
	// period: in no window of one period are more taken than the burst, which
	// is the rate. Charges within a 64th of a period after the first of them
	// count as made at the last: they come back by less than that 64th later
	// than they might, and never sooner.
	Sliding
)

// String returns the mode's name in a policy file.
func (r Refill) String() string {
	switch r {
	case Greedy:
		return "greedy"
	case Interval:
		return "interval"
	case Aligned:
		return "aligned"
	case Sliding:
		return "sliding"
	default:
		return fmt.Sprintf("refill(%d)", uint8(r))
	}
}

// A Limit is a rate, a burst, and how tokens come back.
type Limit struct {
	// Name tells limits of one rule apart when they are changed. Optional.
	Name string
	// Tokens is the number that comes back in each period. With 0 the limit
	// denies every charge.
	Tokens int64
	// Per is the period: whole milliseconds, at least one. Beside a Calendar
	// it may be left 0; NewLimits fills in a nominal length.
	Per time.Duration
	// Calendar is the period in Zone's calendar, with Aligned. 0 with a Zone
	// means Day or Week where Per is 24 or 168 hours.
	Calendar Calendar
	// Zone is the time zone of the Calendar, which needs one. nil counts from
	// the Unix epoch.
	Zone *time.Location
	// Burst is the most that the bucket holds. 0 means Tokens.
	Burst int64
	// Refill is how tokens come back. The zero value is Greedy.
	Refill Refill
}

// MaxLimits is the most limits that one bucket may have.
const MaxLimits = 16

// Limits are the limits of one bucket, checked and ready for arithmetic. They
// never change and are safe for concurrent use.
type Limits struct {
	list    []limit
	closed  bool // one of them has a rate of 0
	debt    bool
	maxDebt int64  // what NewDebtLimits was told
	print   string // of all that the arithmetic goes by
	lease   leaseTerms

	fullWidth uint8 // of the time to full, when packed
}

// A limit is a Limit with what its arithmetic needs. In greedy arithmetic a
// token is worth unit parts, of which each tick brings step.
type limit struct {
	Limit
	name  uint32
	perMS int64
	perUS int64
	burst int64
	most  int64 // that may be spent: more than the burst with debt
	tick  int64 // µs: 1, or 1000 where the exact range asks for it
	unit  int64
	step  int64
	slot  int64 // µs: charges so close together are one in a log
	width width
}

// NewLimits checks limits and makes them ready. The error is a *RangeError if
// a limit lies outside of what can be counted exactly.
func NewLimits(limits ...Limit) (*Limits, error) { return newLimits(false, 0, limits) }

// DefaultDebt is how many bursts a limit may be in debt unless it is said.
const DefaultDebt = 100

// NewDebtLimits is NewLimits for costs that are known only afterwards. A
// positive cost is always taken, even in a group that is denied, until a limit
// owes maxDebt tokens beyond its burst: what goes beyond that is forgiven. It
// is allowed if every limit had one whole token before, and otherwise denied
// though it was taken. A cost of 0 is allowed if every limit has a whole token.
//
// A maxDebt of 0 means DefaultDebt bursts of each limit. All limits must be
// Greedy or Interval.
func NewDebtLimits(maxDebt int64, limits ...Limit) (*Limits, error) {
	return newLimits(true, maxDebt, limits)
}

func newLimits(debt bool, maxDebt int64, limits []Limit) (*Limits, error) {
	if len(limits) == 0 {
		return nil, &RangeError{Field: "limits", Found: "none", Want: "at least one limit"}
	}
	if len(limits) > MaxLimits {
		return nil, &RangeError{Field: "limits", Found: fmt.Sprint(len(limits)), Want: fmt.Sprintf("at most %d", MaxLimits)}
	}
	ls := &Limits{list: make([]limit, len(limits)), debt: debt, maxDebt: maxDebt}
	for i, l := range limits {
		ready, err := l.ready(debt, maxDebt)
		if err != nil {
			err.Index = i
			return nil, err
		}
		ls.list[i] = ready
		ls.closed = ls.closed || ready.Tokens == 0
	}
	ls.print = ls.fingerprint()
	ls.pack()
	return ls, nil
}

// Instead returns limits with l alone in the place of those of ls, and with their
// debt. An error says what of that cannot be counted.
func (ls *Limits) Instead(l Limit) (*Limits, error) {
	return newLimits(ls.debt, ls.maxDebt, []Limit{l})
}

// Draining returns limits that count as ls do, except that a positive cost is
// always taken as far as there are tokens, even in a group that is denied. It
// is for what was spent elsewhere already. Limits with debt are their own.
func (ls *Limits) Draining() *Limits {
	if ls.debt {
		return ls
	}
	d := *ls
	d.debt = true
	d.print = d.fingerprint()
	return &d
}

// Len returns the number of limits.
func (ls *Limits) Len() int { return len(ls.list) }

// At returns limit i, with its Burst filled in, and its Per and Calendar.
func (ls *Limits) At(i int) Limit { return ls.list[i].Limit }

// Closed says that one of the limits has a rate of 0: every charge is denied,
// and a refund, though it is allowed, leaves the bucket as it was.
func (ls *Limits) Closed() bool { return ls.closed }

// Debt says that these are limits of NewDebtLimits, or Draining.
func (ls *Limits) Debt() bool { return ls.debt }

// Same says that ls and o count alike, so that a bucket of one is one of the
// other.
func (ls *Limits) Same(o *Limits) bool {
	return ls == o || (o != nil && ls != nil && ls.print == o.print && ls.print != "")
}

// Print returns a text that only Limits which are the Same have. It is short,
// but not printable.
func (ls *Limits) Print() string { return ls.print }

func (ls *Limits) fingerprint() string {
	text := fmt.Appendf(nil, "%t", ls.debt)
	for i := range ls.list {
		l := &ls.list[i]
		text = fmt.Appendf(text, " %d %d %d %d %d %d", l.name, l.Refill, l.perMS, l.Tokens, l.burst, l.most)
		if l.Zone != nil {
			text = fmt.Appendf(text, " %d %s", l.Calendar, l.Zone)
		}
	}
	return string(text)
}

// counts says that a bucket is written for a cost that it has room for.
func (ls *Limits) counts(cost int64) bool { return cost != 0 && !ls.closed }
