package rls

import (
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/sluice-mesh/sluice/pkg/descriptors"
	"github.com/sluice-mesh/sluice/pkg/policy"
	"github.com/sluice-mesh/sluice/pkg/response"
)

// A scratch is what it takes to answer one request, and no longer.
type scratch struct {
	entries descriptors.Descriptor
	ends    []int
	space   response.Space
}

// reset forgets the request, whose texts are in the entries.
func (c *scratch) reset() { clear(c.entries[:cap(c.entries)]) }

// match collects what the descriptors apply by p. ends[i] is where the rules of
// descriptor i end in m.Applied; it is nil without a policy.
func (s *Server) match(p *policy.Policy, req *rlsv3.RateLimitRequest, c *scratch) (m policy.Match, ends []int) {
	if p == nil {
		return m, nil
	}
	ends = c.ends[:0]
	for _, d := range req.GetDescriptors() {
		applied := c.applied(p, d)
		charge(applied, d, req.GetHitsAddend())
		if len(m.Applied) == 0 {
			m.Applied = applied
		} else {
			m.Applied = append(m.Applied, applied...)
		}
		ends = append(ends, len(m.Applied))
	}
	c.ends = ends
	m.Applied = policy.Replace(m.Applied, ends)
	if s.opts.Manner != nil && s.opts.Manner.Quota {
		m.Spare = allQuotas(m.Applied, ends)
	}
	return m, ends
}

// applied is what applies to d, by the limit that it brings if it has one.
func (c *scratch) applied(p *policy.Policy, d *commonv3.RateLimitDescriptor) []policy.Applied {
	c.entries = appendEntries(c.entries[:0], d)
	o := d.GetLimit()
	if o == nil {
		return p.ForDescriptor(c.entries)
	}
	return p.ForBrought(c.entries, int64(o.GetRequestsPerUnit()), period(o))
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
