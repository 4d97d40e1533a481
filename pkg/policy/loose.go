package policy

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// loose warns of limits that never decide, because others that always hold
// for the same callers are tighter.
func (c *compiler) loose() {
	for j := range c.policy.rules {
		r := &c.policy.rules[j]
		if r.limits == nil || r.limits.Debt() || r.Shadow {
			continue
		}
		rivals := []int{j}
		if c.spec.Rules[j].Descriptor == nil {
			others, _ := c.around(j)
			for _, i := range others {
				if c.sameBuckets(i, j) {
					rivals = append(rivals, i)
				}
			}
		}
		for n := range r.limits.Len() {
			c.looser(j, n, rivals)
		}
	}
}

// sameBuckets says that the rules i and j have buckets for the same callers
// and charge them alike, so that i's is never fuller than j's.
func (c *compiler) sameBuckets(i, j int) bool {
	a, b := &c.policy.rules[i], &c.policy.rules[j]
	same := func(p, q part) bool { return p.name == q.name && p.missing == q.missing }
	if len(a.overrides) > 0 || a.limits.Debt() || !a.cost.same(&b.cost) || !slices.EqualFunc(a.per, b.per, same) {
		return false
	}
	between := c.policy.rules[min(i, j):max(i, j)]
	return !slices.ContainsFunc(between, func(r rule) bool { return r.stop })
}

// looser warns if limit n of rule j is looser than one of the rules rivals.
func (c *compiler) looser(j, n int, rivals []int) {
	l := c.policy.rules[j].limits.At(n)
	for _, i := range rivals {
		limits := c.policy.rules[i].limits
		for m := range limits.Len() {
			tight := limits.At(m)
			first := j < i || j == i && n <= m
			if !neverDecides(l, tight) || first && neverDecides(tight, l) {
				continue
			}
			c.warn(place(place("rules", j)+".limits", n), rateOf(l)+", which never decides",
				"a limit that is tighter in something than the "+rateOf(tight)+" of "+place(place("rules", i)+".limits", m), "")
			return
		}
	}
}

// neverDecides says that l always has room where tight has: as far as that is
// simple to see, which it is where both fill all the time.
func neverDecides(l, tight bucket.Limit) bool {
	if l.Refill != bucket.Greedy || tight.Refill != bucket.Greedy || l.Tokens == 0 || tight.Tokens == 0 || l.Burst < tight.Burst {
		return false
	}
	hi, lo := bits.Mul64(uint64(l.Tokens), uint64(tight.Per))
	tightHi, tightLo := bits.Mul64(uint64(tight.Tokens), uint64(l.Per))
	return hi > tightHi || hi == tightHi && lo >= tightLo
}

func rateOf(l bucket.Limit) string {
	per := strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(l.Per.String())
	rate := fmt.Sprintf("%d/%s", l.Tokens, per)
	if l.Burst == l.Tokens {
		return rate
	}
	return fmt.Sprintf("%s with a burst of %d", rate, l.Burst)
}
