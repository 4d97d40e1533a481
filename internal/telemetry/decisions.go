package telemetry

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// A Door is a way by which requests come. Its String is a label.
type Door uint8

// The doors.
const (
	Authz Door = iota // ext_authz
	RLS               // the rate limit service
	HTTP              // checks over HTTP
	doors
)

var doorNames = [doors]string{Authz: "authz", RLS: "rls", HTTP: "http"}

// String returns the door's label.
func (d Door) String() string { return doorNames[d] }

// What a series counts: an allowance or a denial for each reason, and the two
// words of a rule in shadow.
const (
	reasons     = int(limiter.UnknownDomain) + 1
	shadowAllow = 2 * reasons
	shadowDeny  = shadowAllow + 1
	verdicts    = shadowDeny + 1
)

// A verdict is the decision and the reason of a count, as labels.
type verdict struct{ decision, reason string }

var verdictLabels = labelVerdicts()

func labelVerdicts() (labels [verdicts]verdict) {
	for r := range reasons {
		labels[r] = verdict{"allow", limiter.Reason(r).String()}
		labels[reasons+r] = verdict{"deny", limiter.Reason(r).String()}
	}
	labels[shadowAllow] = verdict{"shadow_allow", limiter.Within.String()}
	labels[shadowDeny] = verdict{"shadow_deny", limiter.OverLimit.String()}
	return labels
}

// A name is a rule's. The zero name stands for the requests that no rule
// decided.
type name struct{ domain, rule string }

// counts are what one rule did. A decision finds its rule's by the rule's
// address and adds one: no label is looked up or made.
type counts [doors][verdicts]atomic.Uint64

// decisions counts decisions, and is the collector of what it counted.
type decisions struct {
	desc, localDesc *prometheus.Desc

	none  counts
	local [doors]atomic.Uint64
	// byRule is replaced, never changed.
	byRule atomic.Pointer[map[*policy.Rule]*counts]
	// byName is the same counts, for rules of the set before.
	mu     sync.Mutex
	byName map[name]*counts
}

func newDecisions() *decisions {
	d := &decisions{byName: map[name]*counts{}}
	d.byRule.Store(&map[*policy.Rule]*counts{})
	d.desc = prometheus.NewDesc("sluice_decisions_total",
		"Requests by the rule that decided ('' for none), as allow or deny; a rule in shadow is counted beside them, as shadow_allow or shadow_deny.",
		[]string{"door", "domain", "rule", "decision", "reason"}, nil)
	d.localDesc = prometheus.NewDesc("sluice_local_decisions_total",
		"Requests for which the store failed and this replica counted alone, as on_error: local asks.", []string{"door"}, nil)
	return d
}

// Rules makes rules, of a policy that comes into use, the ones that decisions
// are counted under. What a rule of the same name has counted goes on; the
// series of rules that are gone end.
func (m *Metrics) Rules(rules []*policy.Rule) {
	m.rules.Set(float64(len(rules)))
	m.decisions.use(rules)
}

func (d *decisions) use(rules []*policy.Rule) {
	d.mu.Lock()
	defer d.mu.Unlock()
	byRule := make(map[*policy.Rule]*counts, len(rules))
	byName := make(map[name]*counts, len(rules))
	for _, r := range rules {
		n := name{r.Domain, r.Name}
		c := d.byName[n]
		if c == nil {
			c = byName[n]
		}
		if c == nil {
			c = new(counts)
		}
		byRule[r], byName[n] = c, c
	}
	d.byName = byName
	d.byRule.Store(&byRule)
}

// Observer returns a function that counts decisions made at door, fit for
// limiter.Options.Observe.
func (m *Metrics) Observer(door Door) func(context.Context, limiter.Decision) {
	return func(_ context.Context, d limiter.Decision) {
		m.decisions.observe(door, &d)
		for _, f := range d.Failures {
			m.failures.WithLabelValues(f.Rule.Domain, f.Rule.Name, f.Field).Inc()
		}
	}
}

func (d *decisions) observe(door Door, dec *limiter.Decision) {
	v := int(dec.Reason)
	if v >= reasons {
		return
	}
	if !dec.Allowed {
		v += reasons
	}
	d.of(decider(dec))[door][v].Add(1)
	if dec.Local {
		d.local[door].Add(1)
	}
	for i := range dec.Results {
		if dec.Applied[i].Shadow && dec.Results[i].Err == nil {
			v := shadowAllow
			if !dec.Results[i].Allowed {
				v = shadowDeny
			}
			d.of(dec.Applied[i].Rule)[door][v].Add(1)
		}
	}
}

// decider returns the rule that decided, nil if none did.
func decider(d *limiter.Decision) *policy.Rule {
	switch {
	case d.Refusal != nil:
		return d.Refusal.Rule
	case d.Deciding >= 0 && d.Deciding < len(d.Applied):
		return d.Applied[d.Deciding].Rule
	}
	return nil
}

func (d *decisions) of(r *policy.Rule) *counts {
	if r == nil {
		return &d.none
	}
	if c := (*d.byRule.Load())[r]; c != nil {
		return c
	}
	return d.older(r)
}

// older finds the counts of a rule of a policy that has just been replaced.
func (d *decisions) older(r *policy.Rule) *counts {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.byName[name{r.Domain, r.Name}]; c != nil {
		return c
	}
	return &d.none
}

// Describe says what Collect will send.
func (d *decisions) Describe(ch chan<- *prometheus.Desc) {
	ch <- d.desc
	ch <- d.localDesc
}

// Collect sends a counter for all that was counted.
func (d *decisions) Collect(ch chan<- prometheus.Metric) {
	d.mu.Lock()
	byName := maps.Clone(d.byName)
	d.mu.Unlock()
	for door := range doors {
		ch <- prometheus.MustNewConstMetric(d.localDesc, prometheus.CounterValue, float64(d.local[door].Load()), door.String())
	}
	d.send(ch, name{}, &d.none)
	for n, c := range byName {
		d.send(ch, n, c)
	}
}

// send leaves out what never happened, but for the denials and allowances of a
// rule that the door has asked: a rate can only be seen of a series that was
// there before.
func (d *decisions) send(ch chan<- prometheus.Metric, n name, c *counts) {
	for door := range doors {
		for v, labels := range verdictLabels {
			count := c[door][v].Load()
			if count == 0 && (n == name{} || !c.twin(door, v)) {
				continue
			}
			ch <- prometheus.MustNewConstMetric(d.desc, prometheus.CounterValue, float64(count),
				door.String(), n.domain, n.rule, labels.decision, labels.reason)
		}
	}
}

// twin says that v is one of a pair whose other was counted.
func (c *counts) twin(door Door, v int) bool {
	const within, over = int(limiter.Within), reasons + int(limiter.OverLimit)
	var other int
	switch v {
	case within:
		other = over
	case over:
		other = within
	case shadowAllow:
		other = shadowDeny
	case shadowDeny:
		other = shadowAllow
	default:
		return false
	}
	return c[door][other].Load() > 0
}
