package bucket_test

import (
	"math/big"
	"sort"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// Leased is tokens that count as spent when their lease ends.
type leased struct{ ends, tokens int64 }

func total(leases []leased) (sum int64) {
	for _, e := range leases {
		sum += e.tokens
	}
	return sum
}

// lapsed lets the time from at to now pass over k, lease by lease.
func lapsed(l bucket.Limit, k lack, at, now int64) lack {
	for i, e := range k.leases {
		if e.ends > now {
			then := later(l, lack{tokens: k.tokens}, at, now)
			then.leases = k.leases[i:]
			return then
		}
		k.tokens = new(big.Rat).Add(later(l, lack{tokens: k.tokens}, at, e.ends).tokens, rat(e.tokens))
		at = e.ends
	}
	return later(l, lack{tokens: k.tokens}, at, now)
}

// leasedUnder is was under l, both greedy: no more than most, of which what is
// spent goes first, and then what is leased, from the first.
func leasedUnder(l, old bucket.Limit, was lack, most, at int64) lack {
	spent := roundUp(was.tokens)
	k := lack{tokens: was.tokens, begun: at, leases: was.leases}
	if old.Tokens != l.Tokens || old.Per != l.Per {
		k.tokens = rat(spent)
	}
	for over := spent + total(k.leases) - most; over > 0; over-- {
		switch {
		case spent > 1:
			spent--
			k.tokens = new(big.Rat).Sub(k.tokens, rat(1))
		case spent == 1:
			spent, k.tokens = 0, rat(0)
		default:
			k.leases = append([]leased(nil), k.leases...)
			if k.leases[0].tokens--; k.leases[0].tokens == 0 {
				k.leases = k.leases[1:]
			}
		}
	}
	return k
}

// untilLeased is until, but at most so long: while what is spent does not do,
// nothing comes before the last lease ends.
func untilLeased(l bucket.Limit, k lack, n, now int64) int64 {
	missing, spent := n-left(l, k), roundUp(k.tokens)
	switch {
	case missing <= 0:
		return 0
	case missing <= spent:
		come := new(big.Rat).Sub(k.tokens, rat(spent-missing))
		return roundUp(come.Quo(come, rate(l)))
	default:
		come := rat(missing)
		return k.leases[len(k.leases)-1].ends - now + roundUp(come.Quo(come, rate(l)))
	}
}

// handBack does what lease reports.
func (o *oracle) handBack(p plan, now int64, lease *bucket.Lease) {
	lacks := o.lacking(p, now)
	lease.Returned = 0
	if lease.Back <= 0 || now < lease.Since || now >= lease.Ends || hasRateZero(p.limits) {
		return
	}
	for i := range lacks {
		var leases []leased
		back := int64(0)
		for _, e := range lacks[i].leases {
			for e.ends >= lease.Ends-lease.Sooner && e.tokens > 0 && back < lease.Back {
				e.tokens, back = e.tokens-1, back+1
			}
			if e.tokens > 0 {
				leases = append(leases, e)
			}
		}
		if back > 0 {
			lacks[i].leases, lease.Returned = leases, back
			lacks[i].tokens = new(big.Rat).Add(lacks[i].tokens, rat(min(back, lease.Spent)))
			o.spend(p, lacks, now, 0)
			return
		}
	}
}

// grant leases what lease wants, once cost has been taken, and says whether
// there was any.
func (o *oracle) grant(p plan, now, cost int64, allowed bool, lease *bucket.Lease) bool {
	lease.Granted, lease.GrantEnds = 0, 0
	if cost <= 0 || !allowed || p.debt || len(p.limits) != 1 || p.limits[0].Refill != bucket.Greedy || hasRateZero(p.limits) {
		return false
	}
	us, k := lease.For.Microseconds(), o.lacks[0]
	n := min(lease.Want, left(p.limits[0], k))
	if us < 1 || us > 3_600_000_000 || n < 1 {
		return false
	}
	grid := (us + 15) / 16
	ends := map[int64]leased{}
	for _, e := range k.leases {
		ends[e.ends] = e
	}
	made := leased{now + us, n}
	for at, e := range ends {
		if at/grid == (now+us)/grid {
			delete(ends, at)
			made = leased{max(made.ends, at), made.tokens + e.tokens}
		}
	}
	ends[made.ends] = made
	if len(ends) > 64 {
		return false
	}
	k.leases = nil
	for _, e := range ends {
		k.leases = append(k.leases, e)
	}
	sort.Slice(k.leases, func(i, j int) bool { return k.leases[i].ends < k.leases[j].ends })
	o.lacks[0] = k
	o.spend(p, o.lacks, now, 0)
	lease.Granted, lease.GrantEnds = n, now+us
	return true
}
