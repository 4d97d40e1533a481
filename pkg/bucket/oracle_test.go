package bucket_test

import (
	"math/big"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// A plan is the limits of a bucket, as they are said.
type plan struct {
	limits []bucket.Limit
	debt   bool
	most   int64 // of debt; 0 is 100 bursts
}

// An oracle is one bucket in exact rationals. It is written from the
// definitions: tokens that flow or come with a period or leave with a charge, a
// charge that takes from all limits or none, a full moment after which nothing
// is remembered. It keeps what is lacking, where the code counts parts and
// ticks, and is slow and wasteful on purpose.
type oracle struct {
	plan         // of the last charge
	at     int64 // µs, of the last charge
	fullAt int64
	lacks  []lack
}

// A lack is how far one limit is from full: with Interval a whole number, and
// the moment its period began; with Sliding the sum of its groups. Leases are
// beside tokens.
type lack struct {
	tokens *big.Rat
	begun  int64
	groups []charged
	leases []leased
}

// Charged is the tokens of charges that count as made at the last of them, all
// within a 64th of a period after the first.
type charged struct{ first, last, tokens int64 }

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
	m := oracle{plan: o.plan, at: now, fullAt: o.fullAt - by}
	for _, k := range o.lacks {
		moved := lack{tokens: k.tokens, begun: k.begun - by}
		for _, g := range k.groups {
			moved.groups = append(moved.groups, charged{g.first - by, g.last - by, g.tokens})
		}
		for _, e := range k.leases {
			moved.leases = append(moved.leases, leased{e.ends - by, e.tokens})
		}
		m.lacks = append(m.lacks, moved)
	}
	return m
}

// lacking is what each limit of p lacks at now.
func (o oracle) lacking(p plan, now int64) []lack {
	o = o.moved(now)
	lacks := make([]lack, len(p.limits))
	from := o.from(p.limits)
	for i, l := range p.limits {
		lacks[i] = lack{tokens: rat(0), begun: now}
		if now < o.fullAt && from[i] >= 0 {
			lacks[i] = later(l, o.under(l, p.owed(l), from[i]), o.at, now)
		}
	}
	return lacks
}

// owed is the most that may be spent of l.
func (p plan) owed(l bucket.Limit) int64 {
	switch {
	case !p.debt || l.Tokens == 0:
		return burst(l)
	case p.most == 0:
		return 101 * burst(l)
	default:
		return burst(l) + p.most
	}
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
// at j: the whole tokens spent up to the most it may, and what is under way
// only where the new limit brings tokens at the same moments.
func (o oracle) under(l bucket.Limit, most int64, j int) lack {
	old, was := o.limits[j], o.lacks[j]
	if len(was.leases) > 0 {
		if l.Refill == bucket.Greedy {
			return leasedUnder(l, old, was, most, o.at)
		}
		was.tokens = rat(roundUp(was.tokens) + total(was.leases))
	}
	spent := rat(roundUp(was.tokens))
	owed := spent
	if most := rat(most); owed.Cmp(most) > 0 {
		owed = most
	}
	if l.Refill == bucket.Sliding && owed.Sign() > 0 {
		n := owed.Num().Int64()
		if old.Refill != l.Refill {
			return lack{tokens: owed, groups: []charged{{o.at, o.at, n}}}
		}
		groups := was.groups
		if old.Per != l.Per {
			groups = regroup(l, groups, o.at)
		}
		return slidden(newest(groups, n))
	}
	if owed.Sign() == 0 || old.Refill != l.Refill || old.Per != l.Per {
		return lack{tokens: owed, begun: o.at}
	}
	if l.Refill != bucket.Greedy {
		return lack{tokens: owed, begun: was.begun}
	}
	if old.Tokens != l.Tokens {
		return lack{tokens: owed, begun: o.at}
	}
	fraction := new(big.Rat).Sub(spent, was.tokens)
	return lack{tokens: new(big.Rat).Sub(owed, fraction), begun: o.at}
}

// later lets the time from at to now pass over k.
func later(l bucket.Limit, k lack, at, now int64) lack {
	if len(k.leases) > 0 {
		return lapsed(l, k, at, now)
	}
	if l.Refill == bucket.Greedy {
		came := new(big.Rat).Mul(rat(now-at), rate(l))
		return lack{tokens: atLeast0(new(big.Rat).Sub(k.tokens, came)), begun: now}
	}
	if l.Refill == bucket.Sliding {
		var groups []charged
		for _, g := range k.groups {
			if g.last+l.Per.Microseconds() > now {
				groups = append(groups, g)
			}
		}
		return slidden(groups)
	}
	for k.tokens.Sign() > 0 {
		comes := comes(l, k, at)
		if comes > now {
			break
		}
		k, at = lack{tokens: atLeast0(new(big.Rat).Sub(k.tokens, rat(l.Tokens))), begun: comes}, comes
	}
	return k
}

// comes is when the next tokens come after at, with a period.
func comes(l bucket.Limit, k lack, at int64) int64 {
	switch {
	case l.Refill == bucket.Interval:
		return k.begun + l.Per.Microseconds()
	case l.Calendar != 0:
		return beginning(l.Zone, l.Calendar, at)
	default:
		next := new(big.Rat).SetFrac64(at, l.Per.Microseconds())
		return (floor(next) + 1) * l.Per.Microseconds()
	}
}

func atLeast0(r *big.Rat) *big.Rat {
	if r.Sign() < 0 {
		return rat(0)
	}
	return r
}

// left is the whole tokens that l has.
func left(l bucket.Limit, k lack) int64 {
	return floor(new(big.Rat).Sub(rat(burst(l)), k.tokens)) - total(k.leases)
}

// until is the µs until l has n tokens, n being at most its burst.
func until(l bucket.Limit, k lack, n, now int64) int64 {
	if len(k.leases) > 0 {
		return untilLeased(l, k, n, now)
	}
	missing := atLeast0(new(big.Rat).Sub(k.tokens, rat(burst(l)-n)))
	if missing.Sign() == 0 {
		return 0
	}
	if l.Refill == bucket.Greedy {
		return roundUp(missing.Quo(missing, rate(l)))
	}
	if l.Refill == bucket.Sliding {
		for _, g := range k.groups {
			if missing.Sub(missing, rat(g.tokens)).Sign() <= 0 {
				return g.last + l.Per.Microseconds() - now
			}
		}
	}
	at := now
	for ; missing.Sign() > 0; missing.Sub(missing, rat(l.Tokens)) {
		at = comes(l, k, at)
		k.begun = at
	}
	return at - now
}

// take charges o and answers.
func (o *oracle) take(p plan, now, cost int64, lease *bucket.Lease) bucket.Result {
	if lease != nil {
		o.handBack(p, now, lease)
	}
	lacks := o.lacking(p, now)
	best := bucket.Result{Allowed: true}
	for i, l := range p.limits {
		if room(l, lacks[i], p.need(cost)) {
			continue
		}
		best.Allowed = false
	}
	allowed := best.Allowed
	switch owes := p.debt && cost > 0; {
	case cost != 0 && !hasRateZero(p.limits) && (allowed || owes):
		o.spend(p, lacks, now, cost)
		lacks = o.lacking(p, now)
	case !allowed:
		*o = o.moved(now)
	}
	if lease != nil && o.grant(p, now, cost, allowed, lease) {
		lacks = o.lacking(p, now)
	}
	for i, l := range p.limits {
		need := p.need(cost)
		if allowed {
			need = 0
		}
		r := answer(l, lacks[i], now, need)
		r.Limit = i
		if i == 0 || decides(r, best) {
			best = r
		}
	}
	return best
}

// need is the tokens that must be there.
func (p plan) need(cost int64) int64 {
	if p.debt && cost >= 0 {
		return 1
	}
	return max(cost, 0)
}

func decides(r, best bucket.Result) bool {
	switch {
	case r.Allowed != best.Allowed:
		return best.Allowed
	case !r.Allowed:
		return r.RetryAfter > best.RetryAfter
	default:
		return r.Remaining < best.Remaining || (r.Remaining == best.Remaining && r.FullIn > best.FullIn)
	}
}

func room(l bucket.Limit, k lack, need int64) bool { return need == 0 || need <= left(l, k) }

func answer(l bucket.Limit, k lack, now, need int64) bucket.Result {
	r := bucket.Result{
		Allowed: room(l, k, need), Remaining: max(left(l, k), 0),
		FullIn: time.Duration(until(l, k, burst(l), now)) * time.Microsecond,
	}
	switch {
	case r.Allowed:
	case need > burst(l):
		r.RetryAfter = bucket.Never
	default:
		r.RetryAfter = time.Duration(until(l, k, need, now)) * time.Microsecond
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

func (o *oracle) spend(p plan, lacks []lack, now, cost int64) {
	*o = oracle{plan: p, at: now, fullAt: now}
	for i, l := range p.limits {
		k := spent(l, lacks[i], now, cost, p.owed(l))
		o.lacks = append(o.lacks, k)
		full := (until(l, k, burst(l), now) + 999) / 1000 * 1000 // kept in whole ms after at
		o.fullAt = max(o.fullAt, now+full)
	}
}

// spent is k with cost more spent, up to most.
func spent(l bucket.Limit, k lack, now, cost, most int64) lack {
	whole := rat(roundUp(k.tokens))
	fraction := new(big.Rat).Sub(whole, k.tokens)
	after := new(big.Rat).Add(whole, rat(cost))
	most -= total(k.leases)
	switch {
	case after.Sign() <= 0:
		return lack{tokens: rat(0), begun: now, leases: k.leases}
	case after.Cmp(rat(most)) > 0:
		after = rat(most)
	}
	if l.Refill == bucket.Sliding {
		return slide(l, k, now, after.Num().Int64()-whole.Num().Int64())
	}
	if k.tokens.Sign() == 0 {
		k.begun = now
	}
	return lack{tokens: after.Sub(after, fraction), begun: k.begun, leases: k.leases}
}
