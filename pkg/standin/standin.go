// Package standin keeps this replica's own buckets for the time in which the
// shared store is away. They go on from what that store was last seen to have,
// and what was spent meanwhile is charged to it when it is back.
//
// It knows charges and buckets. When it is asked, and for which rules, is for
// others to say.
package standin

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/memstore"
)

const (
	// DefaultMaxKeys is how many buckets are settled with the shared store
	// unless Options say. They take some 16 MB.
	DefaultMaxKeys = 1 << 16
	// Pause is how long it waits between two attempts to settle.
	Pause = 100 * time.Millisecond
	// Again is how long a bucket waits for the next attempt where Main has
	// something else under its key.
	Again = 5 * time.Second
	// workers settle at once.
	workers = 16
	// goodbye bounds the last attempt, at Close.
	goodbye = time.Second
)

// A Main is the shared store.
type Main interface {
	// Take makes charges. Its errors may say their Cause.
	Take(ctx context.Context, charges []bucket.Charge, results []bucket.Result) error
}

// Options say what stands in for what.
type Options struct {
	// Local keeps the buckets. Required.
	Local *memstore.Store
	// Main is told what was spent while it was away. Required.
	Main Main
	// MaxKeys bounds the buckets whose spending is remembered for Main. What
	// is spent on others is forgotten, and counted. 0 means DefaultMaxKeys.
	MaxKeys int
}

// A Store stands in for another. It is safe for concurrent use.
type Store struct {
	local *memstore.Store
	main  Main
	most  int

	mu      sync.Mutex
	debts   map[string]debt
	foreign map[string]debt // put off: Main has something else under their keys
	again   time.Time       // until then
	count   atomic.Int64    // of both

	settled, forgotten atomic.Int64

	wake chan struct{}
	stop context.CancelFunc
	wait sync.WaitGroup
}

// A debt is what was spent on a bucket that Main does not know of.
type debt struct {
	limits *bucket.Limits // of the last charge
	tokens int64
}

// New returns a Store that owns neither of the two. Close it after use, before
// them.
func New(o Options) (*Store, error) {
	switch {
	case o.Local == nil:
		return nil, errors.New("standin: Options.Local is required")
	case o.Main == nil:
		return nil, errors.New("standin: Options.Main is required")
	case o.MaxKeys < 0:
		return nil, errors.New("standin: Options.MaxKeys is below 0")
	case o.MaxKeys == 0:
		o.MaxKeys = DefaultMaxKeys
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Store{
		local: o.Local, main: o.Main, most: o.MaxKeys, debts: make(map[string]debt), foreign: make(map[string]debt),
		wake: make(chan struct{}, 1), stop: stop,
	}
	s.wait.Go(func() { s.run(ctx) })
	return s, nil
}

// Close ends the attempts to settle, after a last one of a second at most.
func (s *Store) Close() error {
	s.stop()
	s.wait.Wait()
	return nil
}

// Owed returns how many buckets are still to be settled with Main.
func (s *Store) Owed() int { return int(s.count.Load()) }

// Settled returns how many tokens Main was told of.
func (s *Store) Settled() int64 { return s.settled.Load() }

// Forgotten returns how many tokens Main will not be told of: there was no
// room to remember them, or Main gave no answer when it was told, which it may
// have heard all the same.
func (s *Store) Forgotten() int64 { return s.forgotten.Load() }

// Seen keeps each of the buckets, as Main has it now, under the key at its
// place: what this Store goes on from. A bucket that is not settled yet is left
// as it is. Neither slice is kept.
func (s *Store) Seen(keys []string, buckets []bucket.Bucket) {
	if s.count.Load() > 0 {
		keys, buckets = s.settledOf(keys, buckets)
	}
	s.local.PutEach(keys, buckets)
}

// settledOf returns those of which nothing is owed.
func (s *Store) settledOf(keys []string, buckets []bucket.Bucket) (some []string, of []bucket.Bucket) {
	for i, key := range keys {
		if !s.owes(key) {
			some, of = append(some, key), append(of, buckets[i])
		}
	}
	return some, of
}

func (s *Store) owes(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, owes := s.of(key)[key]
	return owes
}

// Take makes charges as the memory store does, and remembers what they spent.
func (s *Store) Take(ctx context.Context, charges []bucket.Charge, results []bucket.Result) error {
	if err := s.local.Take(ctx, charges, results); err != nil {
		return err
	}
	passed := true
	for i := range charges {
		passed = passed && (charges[i].Shadow || results[i].Allowed)
	}
	for i := range charges {
		c := &charges[i]
		made := passed && results[i].Allowed || c.Limits.Owes(c.Cost)
		if made && c.Cost != 0 && results[i].Err == nil {
			s.note(c)
		}
	}
	return nil
}

// note remembers what c spent, if there is room.
func (s *Store) note(c *bucket.Charge) {
	s.mu.Lock()
	defer s.mu.Unlock()
	debts := s.of(c.Key)
	d, known := debts[c.Key]
	if !known && len(s.debts)+len(s.foreign) >= s.most {
		s.forgotten.Add(max(c.Cost, 0))
		return
	}
	debts[c.Key] = debt{c.Limits, d.tokens + c.Cost}
	s.recount()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// of returns the debts that key is among, or would be. The caller holds the
// lock.
func (s *Store) of(key string) map[string]debt {
	if _, off := s.foreign[key]; off {
		return s.foreign
	}
	return s.debts
}

// recount sets what Owed returns. The caller holds the lock.
func (s *Store) recount() { s.count.Store(int64(len(s.debts) + len(s.foreign))) }
