package redisstore_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/limiter/storetest"
	"github.com/sluice-mesh/sluice/pkg/redisstore"
)

// patience is a deadline that a busy machine keeps.
const patience = 20 * time.Second

func TestStore(t *testing.T) {
	t.Parallel()
	for _, p := range places {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			at := p.start(t)
			storetest.Run(t, func(t *testing.T) storetest.Harness { return harness(t, at) })
		})
	}
}

// racing says that the race detector looks on, which makes each call many times
// as slow: the same tests without it make more of them.
var racing bool

// TestDifferential makes about 50,000 charges on each kind of server, in
// several runs at a time, and fewer in a cluster. With
// SLUICE_TEST_LONG it makes a million where there is one server:
//
//	SLUICE_TEST_LONG=1 go test -count=1 -v -timeout 1h -run 'TestDifferential/(redis|valkey)$' ./pkg/redisstore
func TestDifferential(t *testing.T) {
	t.Parallel()
	for _, p := range places {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			differential(t, p, p.calls, 5, storetest.Differential)
		})
	}
}

// TestDifferentialLeases is TestDifferential of buckets that are leased from.
func TestDifferentialLeases(t *testing.T) {
	t.Parallel()
	for _, p := range places {
		if p.calls == 0 {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			differential(t, p, p.calls/2, 2, storetest.DifferentialLeases)
		})
	}
}

// differential runs so many calls for each of seeds at p, more in a long run.
func differential(t *testing.T, p place, calls int, seeds uint64, run func(*testing.T, storetest.Harness, int, uint64) int) {
	t.Helper()
	at := p.start(t)
	if racing {
		calls /= 5
	}
	if os.Getenv("SLUICE_TEST_LONG") != "" && !at.apart {
		calls = 110_000
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			run(t, harness(t, at), calls, seed)
		})
	}
}

// TestDifferentialInCompany is TestDifferential while others charge buckets of
// their own: its requests go in batches with theirs.
func TestDifferentialInCompany(t *testing.T) {
	t.Parallel()
	for _, p := range []place{places[0], places[3]} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			at := p.start(t)
			at.options.PoolSize = 1
			h := harness(t, at)
			h.Store = &company{Store: h.Store, charge: tagged(t, "{t0}company")}
			before := 0
			for _, s := range at.servers {
				before += scripts(t, s)
			}
			storetest.Differential(t, h, 2000, 7)
			ran := -before
			for _, s := range at.servers {
				ran += scripts(t, s)
			}
			if !at.apart && ran > 3*2000 {
				t.Errorf("2000 calls in the company of 4 each ran %d scripts, want them to share", ran)
			}
		})
	}
}

// A company is a store of which each call goes with 4 others.
type company struct {
	limiter.Store
	charge bucket.Charge
}

func (c *company) Take(ctx context.Context, charges []bucket.Charge, results []bucket.Result) error {
	var wait sync.WaitGroup
	var failed atomic.Value
	for range 4 {
		wait.Go(func() {
			if err := c.Store.Take(ctx, []bucket.Charge{c.charge, c.charge}, make([]bucket.Result, 2)); err != nil {
				failed.Store(err)
			}
		})
	}
	err := c.Store.Take(ctx, charges, results)
	wait.Wait()
	if other, failed := failed.Load().(error); failed {
		return other
	}
	return err
}

// harness opens a store with keys of its own and a clock that stands still.
// When the test is over, it audits the keys.
func harness(t *testing.T, at running) storetest.Harness {
	t.Helper()
	var now clock
	o := at.options
	o.KeyPrefix = fmt.Sprintf("t%d:", harnesses.Add(1))
	o.Deadline = patience
	o.Now = now.time
	store := open(t, o)
	if harnesses.Load()%2 > 0 {
		store.Lead()
	}
	t.Cleanup(func() {
		for _, server := range at.servers {
			audit(t, client(t, server), o.KeyPrefix, 60*time.Second)
		}
	})
	return storetest.Harness{Store: store, SetNow: func(at time.Time) { now.Store(at.UnixMicro()) }, Apart: at.apart}
}

var harnesses atomic.Int64

func open(t *testing.T, o redisstore.Options) *redisstore.Store {
	t.Helper()
	store, err := redisstore.New(o)
	if err != nil {
		t.Fatalf("New(%+v) = %v, want no error", o, err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// A clock stands still at the moment that a test sets, in µs.
type clock struct{ atomic.Int64 }

func (c *clock) time() time.Time { return time.UnixMicro(c.Load()) }

// openAt opens a store that takes the time from now.
func openAt(t *testing.T, url string, now *clock) *redisstore.Store {
	t.Helper()
	return open(t, redisstore.Options{URL: url, Deadline: patience, Now: now.time})
}
