package main

import (
	"context"
	"log/slog"

	"github.com/sluice-mesh/sluice/internal/collapse"
	"github.com/sluice-mesh/sluice/internal/telemetry"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// observers are those who look at what the doors do.
type observers struct {
	metrics *telemetry.Metrics
	watch   *collapse.Watch
	log     *slog.Logger
}

func newObservers(log *slog.Logger) observers {
	b := thisBuild()
	metrics := telemetry.New(telemetry.Options{Version: b.version, Revision: b.revision})
	return observers{metrics, collapse.New(collapse.Options{Log: log, Count: metrics.Collapses()}), log}
}

// use makes the rules of set the ones that are looked at.
func (o observers) use(set *policy.Set) {
	o.metrics.Rules(rules(set))
	o.watch.Use(set)
}

// unwatched tells of a folder whose changes the operating system does not tell.
func (o observers) unwatched(err error) {
	o.log.Warn("a folder cannot be watched, so changes in it are looked for", "error", err)
}

// decided returns what looks at the decisions of a door.
func (o observers) decided(door telemetry.Door) func(context.Context, limiter.Decision) {
	count := o.metrics.Observer(door)
	return func(ctx context.Context, d limiter.Decision) {
		count(ctx, d)
		o.watch.Decided(d.Applied)
	}
}
