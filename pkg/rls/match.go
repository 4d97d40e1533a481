package rls

import (
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/sluice-mesh/sluice/pkg/policy"
)

// match collects what the descriptors apply by p. ends[i] is where the rules of
// descriptor i end in m.Applied; it is nil without a policy.
func (s *Server) match(p *policy.Policy, req *rlsv3.RateLimitRequest) (m policy.Match, ends []int) {
	if p == nil {
		return m, nil
	}
	ends = make([]int, len(req.GetDescriptors()))
	for i, d := range req.GetDescriptors() {
		from := len(m.Applied)
		m.Applied = append(m.Applied, applied(p, d)...)
		charge(m.Applied[from:], d, req.GetHitsAddend())
		ends[i] = len(m.Applied)
	}
	m.Applied = policy.Replace(m.Applied, ends)
	if s.opts.Manner != nil && s.opts.Manner.Quota {
		m.Spare = allQuotas(m.Applied, ends)
	}
	return m, ends
}

// applied is what applies to d, by the limit that it brings if it has one.
func applied(p *policy.Policy, d *commonv3.RateLimitDescriptor) []policy.Applied {
	o := d.GetLimit()
	if o == nil {
		return p.ForDescriptor(descriptor(d))
	}
	return p.ForBrought(descriptor(d), int64(o.GetRequestsPerUnit()), period(o))
}

// allQuotas makes all of applied quotas, and says whether one of the
// descriptors has no rule: then it is a quota too, that charges nothing.
func allQuotas(applied []policy.Applied, ends []int) (spare bool) {
	for i := range applied {
		applied[i].Quota = true
	}
	from := 0
	for _, to := range ends {
		spare = spare || from == to
		from = to
	}
	return spare
}
