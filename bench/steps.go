package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/sluice-mesh/sluice/internal/bench"
	"github.com/sluice-mesh/sluice/internal/telemetry"
	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/descriptors"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/memstore"
	"github.com/sluice-mesh/sluice/pkg/policy"
	"github.com/sluice-mesh/sluice/pkg/policyfile"
)

// A step is what one step of a request costs by itself, in this process.
type step struct {
	Step   string  `json:"step"`
	Nanos  float64 `json:"cpu_ns"`
	Allocs float64 `json:"allocations"`
	Goal   string  `json:"-"`
	ok     bool
}

const (
	metricsNanos  = 150 // at most
	metricsAllocs = 0
	// decideAllocs are the results, which the answer is made of.
	decideAllocs = 1
)

// steps measures the steps that have goals of their own.
func steps(policyPath string) ([]step, error) {
	set, faults := policyfile.Load(policyfile.Options{Paths: []string{policyPath}})
	if err := faults.Err(); err != nil {
		return nil, err
	}
	store, err := memstore.New(memstore.Options{})
	if err != nil {
		return nil, err
	}
	l, err := limiter.New(limiter.Options{Store: store})
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	match := policy.Match{Applied: set.Domain("bench").ForDescriptor(descriptors.Descriptor{{Key: "user", Value: "anna"}})}
	metrics := telemetry.New(telemetry.Options{})
	metrics.Rules(set.Domain("bench").Rules())
	observe := metrics.Observer(telemetry.RLS)
	made := limiter.Decision{Allowed: true, Reason: limiter.Within, Applied: match.Applied, Results: []bucket.Result{{Allowed: true}}}

	decided, err := timed("a decision, memory store", func() { l.Decide(ctx, match) })
	if err != nil {
		return nil, err
	}
	decided.Goal, decided.ok = fmt.Sprintf("%d allocation", decideAllocs), decided.Allocs <= decideAllocs
	counted, err := timed("its Prometheus metrics", func() { observe(ctx, made) })
	counted.Goal = fmt.Sprintf("%d ns, %d allocations", metricsNanos, metricsAllocs)
	counted.ok = counted.Nanos <= metricsNanos && counted.Allocs <= metricsAllocs
	return []step{decided, counted}, err
}

// timed does a step again and again, and returns the CPU time and allocations
// of once.
func timed(name string, do func()) (step, error) {
	const times, least = 100_000, 500 * time.Millisecond
	do() // what is made once
	before, err := bench.CPUTime(os.Getpid())
	if err != nil {
		return step{}, err
	}
	var first, last runtime.MemStats
	runtime.ReadMemStats(&first)
	n := 0
	var used time.Duration
	for used < least {
		for range times {
			do()
		}
		n += times
		after, err := bench.CPUTime(os.Getpid())
		if err != nil {
			return step{}, err
		}
		used = after - before
	}
	runtime.ReadMemStats(&last)
	allocs := float64((last.Mallocs - first.Mallocs) / uint64(n)) // a few are of others
	return step{Step: name, Nanos: float64(used.Nanoseconds()) / float64(n), Allocs: allocs}, nil
}
