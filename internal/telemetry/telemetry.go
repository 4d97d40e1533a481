// Package telemetry turns what happens into Prometheus metrics: decisions,
// calls of the store, reloads of the policy.
//
// Labels are names that the policy's author or we wrote, never a client's, so
// that no client decides how many series there are. It knows nothing of how
// decisions are made, and it logs nothing.
package telemetry

import (
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Options are what Metrics are made of. All may be zero.
type Options struct {
	// Version and Revision are of this build; they label sluice_build_info.
	Version, Revision string
}

// Metrics are the metrics of one process, in a registry of their own. They are
// safe for concurrent use.
type Metrics struct {
	registry  *prometheus.Registry
	decisions *decisions

	storeSeconds *prometheus.HistogramVec
	storeErrors  *prometheus.CounterVec
	breakerOpen  *prometheus.GaugeVec
	breakerTurns *prometheus.CounterVec
	reloads      *prometheus.CounterVec
	reloadGood   prometheus.Gauge
	reloadedAt   prometheus.Gauge
	rules        prometheus.Gauge
	panics       prometheus.Counter
	failures     *prometheus.CounterVec
}

// New makes Metrics that have counted nothing.
func New(o Options) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), decisions: newDecisions()}
	m.makeStore()
	m.makePolicy()
	m.panics = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "sluice_panics_total", Help: "Panics of handlers that were caught. Each is a fault in this program.",
	})
	m.failures = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sluice_expression_failures_total",
		Help: "Expressions of a policy that had no value for a request, by rule and field: a match applies then, an override does not, a cost is 1.",
	}, []string{"domain", "rule", "field"})
	m.registry.MustRegister(
		m.decisions, m.failures, m.storeSeconds, m.storeErrors, m.breakerOpen, m.breakerTurns, m.reloads, m.reloadGood, m.reloadedAt, m.rules, m.panics, buildInfo(o),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

func buildInfo(o Options) prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "sluice_build_info", Help: "Always 1; the labels say what was built.",
		ConstLabels: prometheus.Labels{"version": o.Version, "revision": o.Revision, "goversion": runtime.Version()},
	})
	g.Set(1)
	return g
}

func (m *Metrics) makeStore() {
	m.storeSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "sluice_store_duration_seconds", Help: "How long the store took for the charges of one request, failures included.",
		Buckets: []float64{10e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 1},
	}, []string{"store"})
	m.storeErrors = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sluice_store_errors_total", Help: "Calls of the store that failed, and buckets that it could not read in others, by cause.",
	}, []string{"store", "cause"})
	m.breakerOpen = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "sluice_store_breaker_open", Help: "1 while the store is away and not asked by requests, which go by on_error at once; else 0.",
	}, []string{"store"})
	m.breakerTurns = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sluice_store_breaker_transitions_total", Help: "Times that the store was found away, and there again, by what became of its breaker: open or closed.",
	}, []string{"store", "to"})
}

func (m *Metrics) makePolicy() {
	m.reloads = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sluice_policy_reloads_total", Help: "Times that the policy was read, by result: success or failure.",
	}, []string{"result"})
	m.reloadGood = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "sluice_policy_last_reload_successful", Help: "1 if the policy that was read last is in use, 0 if it has faults and the one before is.",
	})
	m.reloadedAt = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "sluice_policy_last_reload_success_timestamp_seconds", Help: "When the policy in use was read.",
	})
	m.rules = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "sluice_policy_rules", Help: "Rules in the policy in use.",
	})
	for _, result := range []string{"success", "failure"} {
		m.reloads.WithLabelValues(result)
	}
}

// Handler serves the metrics in the formats that Prometheus reads.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// Reloaded notes that a policy was read without faults at the time now, and is
// in use.
func (m *Metrics) Reloaded(now time.Time) {
	m.reloads.WithLabelValues("success").Inc()
	m.reloadGood.Set(1)
	m.reloadedAt.Set(float64(now.UnixMilli()) / 1000)
}

// ReloadFailed notes that a policy was read that cannot be used.
func (m *Metrics) ReloadFailed() {
	m.reloads.WithLabelValues("failure").Inc()
	m.reloadGood.Set(0)
}

// Panicked notes a panic that was caught.
func (m *Metrics) Panicked() { m.panics.Inc() }

// A Memory is a store in memory, as far as it is counted.
type Memory interface {
	// Len is how many buckets are not full.
	Len() int
	// Refused is how many times a new one found no room.
	Refused() int64
}

// StandIn is what tells how far a shared store knows what was spent while it
// was away. It is safe for concurrent use.
type StandIn interface {
	// Owed is how many buckets it is still to be told of.
	Owed() int
	// Settled is how many tokens it was charged with since.
	Settled() int64
	// Forgotten is how many it never will be.
	Forgotten() int64
}

// StandIn adds the metrics of what stands in for the shared store. It may be
// called once; s is asked at each scrape, at any time.
func (m *Metrics) StandIn(s StandIn) {
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "sluice_local_unsettled_buckets", Help: "Buckets that were charged here while the shared store was away, which it has not been told yet.",
		}, func() float64 { return float64(s.Owed()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "sluice_local_settled_tokens_total", Help: "Tokens spent here while the shared store was away that it was charged with since.",
		}, func() float64 { return float64(s.Settled()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "sluice_local_forgotten_tokens_total", Help: "Tokens spent here while the shared store was away that it is not charged with: there was no room to remember them, or no answer.",
		}, func() float64 { return float64(s.Forgotten()) }),
	)
}

// Memory adds the metrics of a memory store. It may be called once for each
// store; m is asked at each scrape, at any time.
func (m *Metrics) Memory(store string, memory Memory) {
	labels := prometheus.Labels{"store": store}
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "sluice_memory_keys", Help: "Buckets that are not full, in a memory store.", ConstLabels: labels,
	}, func() float64 { return float64(memory.Len()) }))
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "sluice_memory_refused_total", Help: "Times that a new bucket found no room in a memory store, and was answered as an empty one.", ConstLabels: labels,
	}, func() float64 { return float64(memory.Refused()) }))
}
