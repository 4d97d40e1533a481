package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Collapses adds a counter of the times that callers were found to have become
// one, and returns what counts one: by the policy's domain, its rule or "", and
// a reason. It may be called once.
func (m *Metrics) Collapses() func(domain, rule, reason string) {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sluice_identity_collapse_total",
		Help: "Times that many callers seemed to be one, at most one a minute for each: untrusted_proxy, a peer that brings addresses nobody vouches for; one_key, a bucket that takes nearly all of a rule's traffic.",
	}, []string{"domain", "rule", "reason"})
	m.registry.MustRegister(c)
	return func(domain, rule, reason string) { c.WithLabelValues(domain, rule, reason).Inc() }
}
