package telemetry

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/lease"
	"github.com/sluice-mesh/sluice/pkg/limiter"
)

// Seconds returns s, watched under the name store: how long its calls took. It
// is for stores that are far enough away for that to be worth two looks at the
// clock.
func (m *Metrics) Seconds(store string, s limiter.Store) limiter.Store {
	return &timed{store: s, seconds: m.storeSeconds.WithLabelValues(store)}
}

type timed struct {
	store   limiter.Store
	seconds prometheus.Observer
}

// Take has the store take, and notes how long that took.
func (t *timed) Take(ctx context.Context, charges []bucket.Charge, results []bucket.Result) error {
	start := time.Now()
	err := t.store.Take(ctx, charges, results)
	t.seconds.Observe(time.Since(start).Seconds())
	return err
}

// Errors returns s, watched under the name store: why its calls failed.
func (m *Metrics) Errors(store string, s limiter.Store) limiter.Store {
	return &watched{store: s, errors: m.storeErrors.MustCurryWith(prometheus.Labels{"store": store})}
}

type watched struct {
	store  limiter.Store
	errors *prometheus.CounterVec
}

// Take has the store take, and notes what failed.
func (w *watched) Take(ctx context.Context, charges []bucket.Charge, results []bucket.Result) error {
	if err := w.store.Take(ctx, charges, results); err != nil {
		w.errors.WithLabelValues(limiter.Cause(err)).Inc()
		return err
	}
	for i := range results {
		if err := results[i].Err; err != nil {
			w.errors.WithLabelValues(limiter.Cause(err)).Inc()
		}
	}
	return nil
}

// Denials adds the metric of the denials that are remembered of the store of
// that name. It may be called once for each store; d is asked at each scrape,
// at any time.
func (m *Metrics) Denials(store string, d interface{ Remembered() int64 }) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "sluice_store_remembered_denials_total", Help: "Requests denied without asking the store, since they had just been.",
		ConstLabels: prometheus.Labels{"store": store},
	}, func() float64 { return float64(d.Remembered()) }))
}

// Leases is what takes tokens ahead of a store. It is safe for concurrent use.
type Leases interface {
	// Figures are what it has done so far.
	Figures() lease.Figures
}

// Leases adds the metrics of the tokens that are taken ahead of the store of
// that name. It may be called once for each store; l is asked at each scrape, at
// any time.
func (m *Metrics) Leases(store string, l Leases) {
	labels := prometheus.Labels{"store": store}
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "sluice_leases_held", Help: "Leases of hot buckets that this replica holds.", ConstLabels: labels,
	}, func() float64 { return float64(l.Figures().Held) }))
	for name, c := range map[string]struct {
		help string
		of   func(lease.Figures) int64
	}{
		"sluice_leases_leased_tokens_total": {"Tokens of hot buckets taken ahead.", func(f lease.Figures) int64 { return f.Leased }},
		"sluice_leases_spent_tokens_total":  {"Tokens taken ahead that were spent, of leases that are over.", func(f lease.Figures) int64 { return f.Spent }},
		"sluice_leases_back_tokens_total":   {"Tokens taken ahead that were given back.", func(f lease.Figures) int64 { return f.Back }},
		"sluice_leases_lapsed_tokens_total": {"Tokens taken ahead that were neither: the store did not answer when it was told, or was told too late.", func(f lease.Figures) int64 { return f.Lapsed }},
	} {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: name, Help: c.help, ConstLabels: labels,
		}, func() float64 { return float64(c.of(l.Figures())) }))
	}
}

// Breaker returns a function to be told whenever the breaker before the store
// of that name opens or closes. It is closed at first.
func (m *Metrics) Breaker(store string) func(open bool) {
	state := m.breakerOpen.WithLabelValues(store)
	opened, closed := m.breakerTurns.WithLabelValues(store, "open"), m.breakerTurns.WithLabelValues(store, "closed")
	return func(open bool) {
		if open {
			state.Set(1)
			opened.Inc()
			return
		}
		state.Set(0)
		closed.Inc()
	}
}
