package telemetry

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/limiter"
)

// Store returns s, watched under the name store: how long its calls took and
// why they failed.
func (m *Metrics) Store(store string, s limiter.Store) limiter.Store {
	return &watched{
		store:   s,
		seconds: m.storeSeconds.WithLabelValues(store),
		errors:  m.storeErrors.MustCurryWith(prometheus.Labels{"store": store}),
	}
}

type watched struct {
	store   limiter.Store
	seconds prometheus.Observer
	errors  *prometheus.CounterVec
}

// Take has the store take, and notes how that went.
func (w *watched) Take(ctx context.Context, charges []bucket.Charge, results []bucket.Result) error {
	start := time.Now()
	err := w.store.Take(ctx, charges, results)
	w.seconds.Observe(time.Since(start).Seconds())
	if err != nil {
		w.errors.WithLabelValues(Cause(err)).Inc()
		return err
	}
	for i := range results {
		if e := results[i].Err; e != nil {
			w.errors.WithLabelValues(Cause(e)).Inc()
		}
	}
	return nil
}

// Cause returns the word that a store's error has for its cause, fit for a
// label, and "other" for an error that has none.
func Cause(err error) string {
	var c interface{ Cause() string }
	if errors.As(err, &c) {
		return c.Cause()
	}
	return "other"
}
