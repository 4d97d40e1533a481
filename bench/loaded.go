package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/sluice-mesh/sluice/internal/server"
	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/descriptors"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/memstore"
	"github.com/sluice-mesh/sluice/pkg/policy"
	"github.com/sluice-mesh/sluice/pkg/policyfile"
	"github.com/sluice-mesh/sluice/pkg/rls"
)

// serveLoaded serves the rate limit service by o.policy, with o.loaded buckets
// in memory from the start: to make so many by requests would take an hour.
func serveLoaded(o options, stdout io.Writer) error {
	listener, err := net.Listen("tcp", o.floor) // before somebody else does
	if err != nil {
		return err
	}
	defer listener.Close()
	set, faults := policyfile.Load(policyfile.Options{Paths: []string{o.policy}})
	if err := faults.Err(); err != nil {
		return err
	}
	store, err := memstore.New(memstore.Options{MaxBytes: 1<<30 + 256*int64(o.loaded)})
	if err != nil {
		return err
	}
	if err := load(store, set.Domain("bench"), o.loaded); err != nil {
		return err
	}
	l, err := limiter.New(limiter.Options{Store: store})
	if err != nil {
		return err
	}
	door, err := rls.New(rls.Options{Policies: func() *policy.Set { return set }, Limiter: l})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	fmt.Fprintln(stdout, ready+listener.Addr().String())
	return server.New(server.Options{Services: []server.Service{server.RateLimit(door)}}).Run(ctx, listener)
}

// load charges the bucket of each user.
func load(store *memstore.Store, p *policy.Policy, n int) error {
	var charges [1]bucket.Charge
	var results [1]bucket.Result
	for i := range n {
		applied := p.ForDescriptor(descriptors.Descriptor{{Key: "user", Value: fmt.Sprint("user-", i)}})
		charges[0] = applied[0].Charge
		charges[0].Cost = 1000 // it lasts longer than the run
		if err := store.Take(context.Background(), charges[:], results[:]); err != nil {
			return err
		}
	}
	return nil
}
