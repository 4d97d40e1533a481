package bucket_test

import (
	"math/big"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// An oracle is one bucket in exact rationals. It is written from the
// definitions: tokens that flow or come with the period, a charge that takes
// from all limits or none, a full moment after which nothing is remembered. It
// keeps what is lacking, where the code counts parts and ticks, and is slow
// and wasteful on purpose.
type oracle struct {
	limits []bucket.Limit // of the last charge
	at     int64          // µs, of the last charge
	fullAt int64
	lacks  []lack
}

// A lack is how far one limit is from full: with Interval a whole number, and
// the moment its period began.
type lack struct {
	tokens *big.Rat
	begun  int64
}

func rat(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func burst(l bucket.Limit) int64 {
	if l.Tokens == 0 || l.Burst == 0 {
		return l.Tokens
	}
	return l.Burst
}

// rate is tokens a µs.
func rate(l bucket.Limit) *big.Rat { return big.NewRat(l.Tokens, l.Per.Microseconds()) }

func floor(r *big.Rat) int64 {
	return new(big.Int).Div(r.Num(), r.Denom()).Int64() // Euclid: the denominator is above 0
}

func roundUp(r *big.Rat) int64 { return -floor(new(big.Rat).Neg(r)) }

// moved is o with its last charge at now, if that is earlier.
func (o oracle) moved(now int64) oracle {
	if o.lacks == nil || o.at <= now {
		return o
	}
	by := o.at - now
	m := oracle{limits: o.limits, at: now, fullAt: o.fullAt - by}
	for _, k := range o.lacks {
		m.lacks = append(m.lacks, lack{k.tokens, k.begun - by})
	}
	return m
}

// lacking is what each of limits lacks at now.
func (o oracle) lacking(limits []bucket.Limit, now int64) []lack {
	o = o.moved(now)
	lacks := make([]lack, len(limits))
	from := o.from(limits)
	for i, l := range limits {
		lacks[i] = lack{rat(0), now}
		if now < o.fullAt && from[i] >= 0 {
			old := from[i]
			lacks[i] = later(l, o.under(l, old), o.at, now)
		}
	}
	return lacks
}

// from pairs limits with those of the last charge.
func (o oracle) from(limits []bucket.Limit) []int {
	from := make([]int, len(limits))
	free := map[int]bool{}
	for j := range o.lacks {
		free[j] = true
	}
	for i := range from {
		from[i] = -1
	}
	pair := func(fits func(l, old bucket.Limit, same bool) bool) {
		for i, l := range limits {
			for j, old := range o.limits {
				if from[i] == -1 && free[j] && fits(l, old, i == j) {
					from[i] = j
					delete(free, j)
				}
			}
		}
	}
	pair(func(l, old bucket.Limit, _ bool) bool { return l.Name != "" && l.Name == old.Name })
	pair(func(l, old bucket.Limit, _ bool) bool { return l.Per == old.Per })
	pair(func(_, _ bucket.Limit, same bool) bool { return same })
	return from
}

// under is what l lacks at the last charge, having come in place of the limit
// at j: the whole tokens spent up to the new burst, and what is under way
// only where the new limit brings tokens at the same moments.
func (o oracle) under(l bucket.Limit, j int) lack {
	old, was := o.limits[j], o.lacks[j]
	spent := rat(roundUp(was.tokens))
	owed := spent
	if most := rat(burst(l)); owed.Cmp(most) > 0 {
		owed = most
	}
	if owed.Sign() == 0 || old.Refill != l.Refill || old.Per != l.Per {
		return lack{owed, o.at}
	}
	if l.Refill == bucket.Interval {
		return lack{owed, was.begun}
	}
	if old.Tokens != l.Tokens {
		return lack{owed, o.at}
	}
	fraction := new(big.Rat).Sub(spent, was.tokens)
	return lack{new(big.Rat).Sub(owed, fraction), o.at}
}

// later lets the time from at to now pass over k.
func later(l bucket.Limit, k lack, at, now int64) lack {
	if l.Refill == bucket.Greedy {
		came := new(big.Rat).Mul(rat(now-at), rate(l))
		return lack{atLeast0(new(big.Rat).Sub(k.tokens, came)), now}
	}
	for k.tokens.Sign() > 0 && k.begun+l.Per.Microseconds() <= now {
		k = lack{atLeast0(new(big.Rat).Sub(k.tokens, rat(l.Tokens))), k.begun + l.Per.Microseconds()}
	}
	return k
}

func atLeast0(r *big.Rat) *big.Rat {
	if r.Sign() < 0 {
		return rat(0)
	}
	return r
}

// left is the whole tokens that l has.
func left(l bucket.Limit, k lack) int64 { return floor(new(big.Rat).Sub(rat(burst(l)), k.tokens)) }

// until is the µs until l has n tokens, n being at most its burst.
func until(l bucket.Limit, k lack, n, now int64) int64 {
	missing := atLeast0(new(big.Rat).Sub(k.tokens, rat(burst(l)-n)))
	switch {
	case missing.Sign() == 0:
		return 0
	case l.Refill == bucket.Interval:
		periods := roundUp(missing.Quo(missing, rat(l.Tokens)))
		return k.begun + periods*l.Per.Microseconds() - now
	default:
		return roundUp(missing.Quo(missing, rate(l)))
	}
}

// take charges o and answers.
func (o *oracle) take(limits []bucket.Limit, now, cost int64) bucket.Result {
	lacks := o.lacking(limits, now)
	best := bucket.Result{Allowed: true}
	for i, l := range limits {
		r := answer(l, lacks[i], now, cost)
		r.Limit = i
		if !r.Allowed && (best.Allowed || r.RetryAfter > best.RetryAfter) {
			best = r
		}
	}
	if !best.Allowed {
		*o = o.moved(now)
		return best
	}
	if cost != 0 && !hasRateZero(limits) {
		o.spend(limits, lacks, now, cost)
		lacks = o.lacking(limits, now)
	}
	for i, l := range limits {
		r := answer(l, lacks[i], now, 0)
		r.Limit = i
		if i == 0 || r.Remaining < best.Remaining || (r.Remaining == best.Remaining && r.FullIn > best.FullIn) {
			best = r
		}
	}
	return best
}

func answer(l bucket.Limit, k lack, now, cost int64) bucket.Result {
	r := bucket.Result{
		Allowed: cost <= 0 || cost <= left(l, k), Remaining: left(l, k),
		FullIn: time.Duration(until(l, k, burst(l), now)) * time.Microsecond,
	}
	switch {
	case r.Allowed:
	case cost > burst(l):
		r.RetryAfter = bucket.Never
	default:
		r.RetryAfter = time.Duration(until(l, k, cost, now)) * time.Microsecond
	}
	return r
}

func hasRateZero(limits []bucket.Limit) bool {
	for _, l := range limits {
		if l.Tokens == 0 {
			return true
		}
	}
	return false
}

func (o *oracle) spend(limits []bucket.Limit, lacks []lack, now, cost int64) {
	*o = oracle{limits: limits, at: now, fullAt: now}
	for i, l := range limits {
		k := lacks[i]
		if k.tokens.Sign() == 0 {
			k.begun = now
		}
		k.tokens = atLeast0(new(big.Rat).Add(k.tokens, rat(cost)))
		o.lacks = append(o.lacks, k)
		full := (until(l, k, burst(l), now) + 999) / 1000 * 1000 // kept in whole ms after at
		o.fullAt = max(o.fullAt, now+full)
	}
}
