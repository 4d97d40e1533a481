package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-mesh/sluice/internal/bench"
	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/redisstore"
)

// direct asks a server through the stores of so many replicas, in this process,
// with one request each under way: what a node costs that is busy, by batches
// of one. With one replica and few callers it would be idle between two, and
// pay for that.
const direct = "direct, "

// storesOf returns those that ask for p, which are kept for their connections.
func (l *lab) storesOf(p place) ([]*redisstore.Store, error) {
	if l.direct[p.Fleet] != nil {
		return l.direct[p.Fleet], nil
	}
	nodes := l.stores[p.Fleet]
	url := nodes[0].URL
	if nodes[0].bus != "" {
		url = "redis+cluster://" + nodes[0].Addr
	}
	for range p.Replicas {
		s, err := redisstore.New(redisstore.Options{URL: url, Deadline: storeDeadline})
		if err != nil {
			return nil, err
		}
		l.direct[p.Fleet] = append(l.direct[p.Fleet], s)
	}
	return l.direct[p.Fleet], nil
}

// askDirect asks in a closed loop, one request a replica.
func (l *lab) askDirect(ctx context.Context, p place, d time.Duration) (bench.Report, error) {
	stores, err := l.storesOf(p)
	if err != nil {
		return bench.Report{}, err
	}
	ls, err := bucket.NewLimits(bucket.Limit{Tokens: 1000, Per: 24 * time.Hour, Burst: 1_000_000})
	if err != nil {
		return bench.Report{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var asked atomic.Int64
	var failure atomic.Pointer[error]
	var wait sync.WaitGroup
	for i, s := range stores {
		wait.Go(func() {
			charges, results := []bucket.Charge{{Limits: ls, Cost: 1}}, make([]bucket.Result, 1)
			for n := uint64(i); ctx.Err() == nil; n += uint64(len(stores)) {
				charges[0].Key = fmt.Sprintf("bench:direct:%08d", n%p.Keys)
				// A call that ends with the time is not to be cut off: it would be counted at the server alone.
				if err := s.Take(context.WithoutCancel(ctx), charges, results); err != nil {
					failure.Store(&err)
					continue // a busy machine is late now and then
				}
				asked.Add(1)
			}
		})
	}
	wait.Wait()
	r := bench.Report{Requests: asked.Load(), PerSecond: float64(asked.Load()) / d.Seconds()}
	if err := failure.Load(); err != nil && r.Requests == 0 {
		return r, *err
	}
	return r, nil
}
