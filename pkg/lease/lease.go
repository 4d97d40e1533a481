// Package lease stands before a store that is far away and takes tokens of hot
// keys ahead: a share of the burst at a time, to spend without a round trip. What
// is left is given back when the time of the lease is over, or sooner.
//
// It takes charges of a single bucket whose limits say that they are leased
// from; all others pass by. A key is hot once it is charged eight times within
// the time of a lease. Then one caller asks for a lease along with its charge
// while the others charge the store, and once it is there they spend it. They
// stop an eighth of its time before it ends, by this process's own monotonic
// clock, counted from before the store was asked. A lease that may have been
// granted, but of which no answer came, is never spent.
//
// How it is that no more is admitted than the limit is told in package bucket.
// What is leased and not spent is missing for others for as long as the lease
// lasts, and a 16th of it longer, if it is not given back: when the process is
// killed, or the store does not answer. While the store is away, what is held is
// spent all the same until it stops: the store has counted it already.
//
// The package knows neither the store nor the rules.
package lease

import (
	"context"
	"errors"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

const (
	// DefaultMaxKeys is how many keys are watched unless Options say. They take
	// some 2 MB.
	DefaultMaxKeys = 1 << 13

	shards = 64
	// workers give back at once.
	workers = 16
	// goodbye bounds giving back at Close.
	goodbye = time.Second
)

// A Store is what is asked.
type Store interface {
	// Take makes the charges of one request, and heeds their leases.
	Take(ctx context.Context, charges []bucket.Charge, results []bucket.Result) error
}

// Options say what a Keeper stands before. Only Store is required.
type Options struct {
	Store Store
	// MaxKeys is about how many keys are watched at most, the hot ones
	// included. Where there is no room for another, it is not leased from. 0
	// means DefaultMaxKeys.
	MaxKeys int
}

// A Keeper is a Store before another, which keeps the leases of its hot keys.
// It is safe for concurrent use.
type Keeper struct {
	store  Store
	seed   maphash.Seed
	shards [shards]shard

	closed  atomic.Bool
	places  chan struct{} // of workers
	wait    sync.WaitGroup
	figures figures
}

// New returns a Keeper that holds nothing. It does not own the store. Close it
// after use, before the store.
func New(o Options) (*Keeper, error) {
	switch {
	case o.Store == nil:
		return nil, errors.New("lease: Options.Store is required")
	case o.MaxKeys < 0:
		return nil, errors.New("lease: Options.MaxKeys is negative, want 0 for the default or more")
	case o.MaxKeys == 0:
		o.MaxKeys = DefaultMaxKeys
	}
	k := &Keeper{store: o.Store, seed: maphash.MakeSeed(), places: make(chan struct{}, workers)}
	for i := range k.shards {
		k.shards[i].keys, k.shards[i].most = map[string]*entry{}, max(o.MaxKeys/shards, 1)
	}
	return k, nil
}

// Take makes charges: of what is held, if it can, and else by the store. After
// an error that the store makes, it may read charges still.
func (k *Keeper) Take(ctx context.Context, charges []bucket.Charge, results []bucket.Result) error {
	if !leased(charges) || len(results) != 1 || ctx.Err() != nil || k.closed.Load() {
		return k.store.Take(ctx, charges, results)
	}
	c := &charges[0]
	sh := &k.shards[maphash.String(k.seed, c.Key)%shards]
	e, choice := sh.decide(c)
	switch choice.Way {
	case Spend:
		results[0] = choice.Result
		return nil
	case Plain:
		return k.store.Take(ctx, charges, results)
	}
	return k.ask(ctx, e, c, choice.Lease, results)
}

// leased says whether charges may be made of what is held.
func leased(charges []bucket.Charge) bool {
	if len(charges) != 1 || charges[0].Shadow || charges[0].Cost == 0 || charges[0].Lease != nil {
		return false
	}
	tokens, _ := charges[0].Limits.Lease()
	return tokens > 0
}

// ask makes c by the store, with what is asked, for e.
func (k *Keeper) ask(ctx context.Context, e *entry, c *bucket.Charge, asked bucket.Lease, results []bucket.Result) error {
	l, leasing := &asked, *c
	leasing.Lease = l
	err := k.store.Take(ctx, []bucket.Charge{leasing}, results)
	failed := err != nil || results[0].Err != nil
	k.figures.over(l, failed)
	now := time.Now()
	e.in.mu.Lock()
	defer e.in.mu.Unlock()
	if failed || k.closed.Load() {
		e.Failed(now)
		return err
	}
	e.Answered(now, l, results[0])
	if granted, _, stops := e.Held(); granted > 0 {
		k.figures.leased.Add(granted)
		k.figures.held.Add(1)
		e.wake(stops.Sub(now), func() { k.end(e) })
	}
	return nil
}

// end gives back what e holds, if its time is over.
func (k *Keeper) end(e *entry) {
	now := time.Now()
	e.in.mu.Lock()
	granted, ls, stops := e.Held()
	if granted == 0 || now.Before(stops) || k.closed.Load() {
		e.in.mu.Unlock()
		return
	}
	l := e.End(now)
	k.wait.Add(1)
	e.in.mu.Unlock()
	defer k.wait.Done()
	_, lasts := ls.Lease()
	ctx, cancel := context.WithTimeout(context.Background(), min(max(early(lasts), 10*time.Millisecond), goodbye))
	defer cancel()
	k.giveBack(ctx, e.key, ls, &l)
}

// giveBack has the store told of l.
func (k *Keeper) giveBack(ctx context.Context, key string, ls *bucket.Limits, l *bucket.Lease) {
	select {
	case k.places <- struct{}{}:
		defer func() { <-k.places }()
	case <-ctx.Done():
		k.figures.over(l, true)
		return
	}
	results := make([]bucket.Result, 1)
	err := k.store.Take(ctx, []bucket.Charge{{Key: key, Limits: ls, Lease: l}}, results)
	k.figures.over(l, err != nil || results[0].Err != nil)
}

// Close gives back all that is held, within a second. From then on charges pass
// by.
func (k *Keeper) Close() error {
	k.closed.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	for i := range k.shards {
		k.shards[i].close(func(key string, ls *bucket.Limits, l bucket.Lease) {
			k.wait.Go(func() { k.giveBack(ctx, key, ls, &l) })
		})
	}
	k.wait.Wait()
	return nil
}
