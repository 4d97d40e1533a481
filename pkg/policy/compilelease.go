package policy

import "github.com/sluice-mesh/sluice/pkg/bucket"

// lease has tokens of r taken ahead, under all limits that allow it.
func (c *compiler) lease(r *rule, s *RuleSpec, path string) {
	switch {
	case s.Lease == nil:
		return
	case s.Shadow:
		c.fault(path, "lease with shadow", "one of them: a shadow rule asks for each request", "leave lease out until shadow is taken away")
		return
	case s.Debt:
		c.fault(path, "lease with debt", "one of them: what may be owed cannot be taken ahead", "leave lease out")
		return
	}
	l, some := s.Lease.filled(), false
	if l.Share < 1 || l.Share > MostShare || l.For < ShortestLease || l.For > LongestLease {
		c.fault(path, "a lease out of bounds", "a share of the burst from 0.01% to 50%, for a time from 10ms to 10s", "")
		return
	}
	r.limits = l.of(r.limits, &some)
	for i := range r.overrides {
		r.overrides[i].limits = l.of(r.overrides[i].limits, &some)
	}
	if faulty := r.limits == nil && !s.Unlimited; !some && !faulty {
		c.unleasable(r.limits, path)
	}
	if r.limits != nil {
		c.doubtLease(r.limits, path)
	}
}

// doubtLease warns of a lease that spares nothing.
func (c *compiler) doubtLease(ls *bucket.Limits, path string) {
	if tokens, _ := ls.Lease(); tokens == 1 {
		c.warn(path, "a lease of one token of "+number(int(ls.At(0).Burst))+" at a time", "two at least, else each request asks the store as it does without",
			"raise share, or leave lease out")
	}
}

func (l LeaseSpec) filled() LeaseSpec {
	if l.Share == 0 {
		l.Share = DefaultShare
	}
	if l.For == 0 {
		l.For = DefaultLease
	}
	return l
}

// of returns ls with its lease, if it can have one, and notes that.
func (l LeaseSpec) of(ls *bucket.Limits, some *bool) *bucket.Limits {
	if ls == nil || !ls.Leasable() {
		return ls
	}
	*some = true
	return ls.Leasing(l.Share, l.For)
}

// unleasable says why nothing can be leased under ls.
func (c *compiler) unleasable(ls *bucket.Limits, path string) {
	const want = "one greedy limit, as it is without refill"
	switch {
	case ls == nil:
		c.fault(path, "lease beside unlimited", "a limit to lease from", "leave lease out")
	case ls.Len() > 1:
		c.fault(path, "lease beside "+number(ls.Len())+" limits", want, "keep one of them, or leave lease out")
	case ls.Closed():
		c.fault(path, "lease beside a rate of 0", "a limit to lease from", "leave lease out")
	default:
		c.fault(path, "lease beside refill: "+ls.At(0).Refill.String(), want, "take refill away, or leave lease out")
	}
}
