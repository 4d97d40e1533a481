package bucket

import (
	"fmt"
	"hash/fnv"
	"math/bits"
	"time"
)

const (
	// exact bounds every number here: a double holds whole numbers below it,
	// and Redis's Lua has nothing but doubles.
	exact = 1 << 53
	// maxFill bounds the time an empty bucket may take to fill, so that the
	// moment when it is full stays exact too.
	maxFill = 100 * 365 * 24 * time.Hour
	// maxPeriods bounds the burst of a calendar limit: a script is told the
	// ends of so many periods.
	maxPeriods = 32
	// slots bounds the log of a sliding limit: a charge may be counted so
	// much of a period late.
	slots = 64
)

// A RangeError says which field of which limit cannot be counted exactly.
type RangeError struct {
	Index int    // of the limit
	Field string // tokens, per, burst, refill, zone, max_debt or limits
	Found string
	Want  string
	Most  int64 // the largest tokens, burst or debt that fits the rest of the limit; 0 for other fields
}

// Error says what was found and what was wanted.
func (e *RangeError) Error() string {
	return fmt.Sprintf("%s is %s, want %s", e.Field, e.Found, e.Want)
}

func (l Limit) ready(debt bool, maxDebt int64) (limit, *RangeError) {
	if l.Burst == 0 || l.Tokens == 0 {
		l.Burst = l.Tokens
	}
	if err := l.calendar(); err != nil {
		return limit{}, err
	}
	if err := l.check(debt); err != nil {
		return limit{}, err
	}
	r := limit{
		Limit: l, name: nameHash(l.Name), perMS: l.Per.Milliseconds(), perUS: l.Per.Microseconds(),
		burst: l.Burst, most: l.Burst, tick: 1, unit: 1,
	}
	r.slot = ceil(r.perUS, slots)
	if l.Tokens == 0 {
		return r, nil
	}
	return r, r.size(debt, maxDebt)
}

func (l *Limit) check(debt bool) *RangeError {
	switch {
	case l.Tokens < 0 || l.Tokens >= exact:
		return &RangeError{Field: "tokens", Found: fmt.Sprint(l.Tokens), Want: fmt.Sprintf("0 to %d", int64(exact-1)), Most: exact - 1}
	case l.Per < time.Millisecond || l.Per%time.Millisecond != 0 || l.Per > maxFill:
		return &RangeError{Field: "per", Found: l.Per.String(), Want: "whole milliseconds, from 1ms to 100 years"}
	case l.Refill > Sliding:
		return &RangeError{Field: "refill", Found: l.Refill.String(), Want: "greedy, interval, aligned or sliding"}
	case debt && l.Refill > Interval:
		return &RangeError{Field: "refill", Found: l.Refill.String(), Want: "greedy or interval, where there may be debt"}
	case l.Refill == Sliding && l.Burst != l.Tokens:
		return &RangeError{
			Field: "burst", Found: fmt.Sprint(l.Burst), Want: fmt.Sprintf("none, or the rate's %d: a sliding limit holds no more", l.Tokens), Most: l.Tokens,
		}
	}
	return nil
}

// size sets how l is counted, and refuses what does not fit.
func (l *limit) size(debt bool, maxDebt int64) *RangeError {
	owed := int64(0)
	if debt {
		if owed = maxDebt; maxDebt == 0 {
			owed = clamp(min(l.burst, exact/DefaultDebt) * DefaultDebt)
		}
	}
	// Neither a sliding nor an aligned token has parts.
	if l.Refill <= Interval {
		if l.count(1); !l.fits(owed) {
			l.count(1000)
		}
	}
	most := l.largest()
	switch {
	case l.burst < 0 || l.burst > most:
		return &RangeError{
			Field: "burst", Found: fmt.Sprint(l.Burst), Want: fmt.Sprintf("1 to %d at this rate", most), Most: most,
		}
	case owed < 0 || owed > most-l.burst:
		return &RangeError{
			Field: "max_debt", Found: fmt.Sprint(owed), Want: fmt.Sprintf("1 to %d at this rate and burst", most-l.burst), Most: most - l.burst,
		}
	}
	l.most = l.burst + owed
	return nil
}

// count sets l to be counted in ticks of so many µs.
func (l *limit) count(tick int64) {
	ticks := l.perUS / tick
	common := gcd(l.Tokens, ticks)
	l.tick, l.unit, l.step = tick, ticks/common, l.Tokens/common
}

func (l *limit) fits(owed int64) bool {
	most := l.largest()
	return l.burst >= 0 && l.burst <= most && owed <= most-l.burst
}

// largest returns the most that can be spent and counted in l's ticks, and
// that is back in time.
func (l *limit) largest() int64 {
	fill, per := uint64(maxFill.Microseconds()), uint64(l.perUS)
	switch {
	case l.Refill == Sliding:
		return exact - 1
	case l.Calendar != 0:
		fill = maxPeriods * per
	case l.Refill != Greedy:
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
