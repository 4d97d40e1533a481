package bucket

import (
	"fmt"
	"hash/fnv"
	"math/bits"
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
)

// String returns the mode's name in a policy file.
func (r Refill) String() string {
	switch r {
	case Greedy:
		return "greedy"
	case Interval:
		return "interval"
	default:
		return fmt.Sprintf("refill(%d)", uint8(r))
	}
}

const (
	// exact bounds every number here: a double holds whole numbers below it,
	// and Redis's Lua has nothing but doubles.
	exact = 1 << 53
	// maxFill bounds the time an empty bucket may take to fill, so that the
	// moment when it is full stays exact too.
	maxFill = 100 * 365 * 24 * time.Hour
)

// A Limit is a rate, a burst, and how tokens come back.
type Limit struct {
	// Name tells limits of one rule apart when they are changed. Optional.
	Name string
	// Tokens is the number that comes back in each period. With 0 the limit
	// denies every charge.
	Tokens int64
	// Per is the period: whole milliseconds, at least one.
	Per time.Duration
	// Burst is the most that the bucket holds. 0 means Tokens.
	Burst int64
	// Refill is how tokens come back. The zero value is Greedy.
	Refill Refill
}

// Limits are the limits of one bucket, checked and ready for arithmetic. They
// never change and are safe for concurrent use.
type Limits struct {
	list   []limit
	closed bool // one of them has a rate of 0
}

// A limit is a Limit with what its arithmetic needs. In greedy arithmetic a
// token is worth unit parts, of which each tick brings step.
type limit struct {
	Limit
	name  uint32
	perMS int64
	perUS int64
	burst int64
	tick  int64 // µs: 1, or 1000 where the exact range asks for it
	unit  int64
	step  int64
}

// NewLimits checks limits and makes them ready. The error is a *RangeError if
// a limit lies outside of what can be counted exactly.
func NewLimits(limits ...Limit) (*Limits, error) {
	if len(limits) == 0 {
		return nil, &RangeError{Field: "limits", Found: "none", Want: "at least one limit"}
	}
	if len(limits) > MaxLimits {
		return nil, &RangeError{Field: "limits", Found: fmt.Sprint(len(limits)), Want: fmt.Sprintf("at most %d", MaxLimits)}
	}
	ls := &Limits{list: make([]limit, len(limits))}
	for i, l := range limits {
		ready, err := l.ready()
		if err != nil {
			err.Index = i
			return nil, err
		}
		ls.list[i] = ready
		ls.closed = ls.closed || ready.Tokens == 0
	}
	return ls, nil
}

// MaxLimits is the most limits that one bucket may have.
const MaxLimits = 16

// Len returns the number of limits.
func (ls *Limits) Len() int { return len(ls.list) }

// At returns limit i, with its Burst filled in.
func (ls *Limits) At(i int) Limit { return ls.list[i].Limit }

// Closed says that one of the limits has a rate of 0: every charge is denied,
// and a refund, though it is allowed, leaves the bucket as it was.
func (ls *Limits) Closed() bool { return ls.closed }

// counts says that a bucket is written for a cost that it has room for.
func (ls *Limits) counts(cost int64) bool { return cost != 0 && !ls.closed }

// A RangeError says which field of which limit cannot be counted exactly.
type RangeError struct {
	Index int    // of the limit
	Field string // tokens, per, burst, refill or limits
	Found string
	Want  string
	Most  int64 // the largest tokens or burst that fits the rest of the limit; 0 for other fields
}

// Error says what was found and what was wanted.
func (e *RangeError) Error() string {
	return fmt.Sprintf("%s is %s, want %s", e.Field, e.Found, e.Want)
}

func (l Limit) ready() (limit, *RangeError) {
	if l.Burst == 0 || l.Tokens == 0 {
		l.Burst = l.Tokens
	}
	if err := l.check(); err != nil {
		return limit{}, err
	}
	r := limit{
		Limit: l, name: nameHash(l.Name), perMS: l.Per.Milliseconds(), perUS: l.Per.Microseconds(),
		burst: l.Burst, tick: 1, unit: 1,
	}
	if l.Tokens == 0 {
		return r, nil
	}
	if r.count(1); !r.fits() {
		r.count(1000)
	}
	if !r.fits() {
		most := r.most()
		return limit{}, &RangeError{
			Field: "burst", Found: fmt.Sprint(l.Burst), Want: fmt.Sprintf("1 to %d at this rate", most), Most: most,
		}
	}
	return r, nil
}

func (l Limit) check() *RangeError {
	switch {
	case l.Tokens < 0 || l.Tokens >= exact:
		return &RangeError{Field: "tokens", Found: fmt.Sprint(l.Tokens), Want: fmt.Sprintf("0 to %d", int64(exact-1)), Most: exact - 1}
	case l.Per < time.Millisecond || l.Per%time.Millisecond != 0 || l.Per > maxFill:
		return &RangeError{Field: "per", Found: l.Per.String(), Want: "whole milliseconds, from 1ms to 100 years"}
	case l.Refill > Interval:
		return &RangeError{Field: "refill", Found: l.Refill.String(), Want: "greedy or interval"}
	}
	return nil
}

// count sets l to be counted in ticks of so many µs.
func (l *limit) count(tick int64) {
	ticks := l.perUS / tick
	common := gcd(l.Tokens, ticks)
	l.tick, l.unit, l.step = tick, ticks/common, l.Tokens/common
}

func (l *limit) fits() bool { return l.burst >= 0 && l.burst <= l.most() }

// most returns the largest burst that can be counted in l's ticks and that an
// empty bucket fills in time.
func (l *limit) most() int64 {
	fill, per := uint64(maxFill.Microseconds()), uint64(l.perUS)
	if l.Refill == Interval {
		fill -= fill % per
	}
	most := uint64((exact - 1) / l.unit)
	if hi, lo := bits.Mul64(fill, uint64(l.Tokens)); hi < per {
		tokens, _ := bits.Div64(hi, lo, per)
		most = min(most, tokens)
	}
	return int64(most)
}

// nameHash returns 0 for no name, and never 0 for one.
func nameHash(name string) uint32 {
	if name == "" {
		return 0
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	return max(h.Sum32(), 1)
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
