// Package memstore keeps buckets in the memory of this process: the embedded
// store. Nothing survives a restart and nothing is shared with other replicas.
//
// It is bounded, and never makes room by forgetting a bucket that is not full:
// that would hand its owner a full one. A new key that finds no room is an
// error. The package knows buckets and their keys, not rules or requests.
package memstore

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// DefaultMaxKeys is how many buckets are kept at most unless Options say.
const DefaultMaxKeys = 1 << 20

// Options are what New needs. The zero value is the documented default.
type Options struct {
	// MaxKeys bounds the buckets that are not full. 0 means DefaultMaxKeys.
	MaxKeys int
	// Now is the clock, called under locks. Nil means the wall clock at New
	// and the monotonic clock since, so that a wall clock that is set gives
	// and takes nothing.
	Now func() time.Time
}

// A Store keeps buckets in memory. It is safe for concurrent use. It starts no
// goroutine and needs no closing: full buckets are dropped a few at a time by
// the charges that come after.
type Store struct {
	now    func() time.Time
	max    int64
	kept   atomic.Int64
	seed   maphash.Seed
	calls  sync.Pool // of *call
	shards [shards]shard
}

// New returns an empty Store.
func New(o Options) (*Store, error) {
	if o.MaxKeys < 0 {
		return nil, fmt.Errorf("MaxKeys is %d, want 0 or more", o.MaxKeys)
	}
	if o.MaxKeys == 0 {
		o.MaxKeys = DefaultMaxKeys
	}
	if o.Now == nil {
		start := time.Now()
		o.Now = func() time.Time { return start.Add(time.Since(start)) }
	}
	s := &Store{now: o.Now, max: int64(o.MaxKeys), seed: maphash.MakeSeed()}
	s.calls.New = func() any { return &call{store: s, slots: make([]slot, 0, 4)} }
	for i := range s.shards {
		s.shards[i].entries = map[string]*entry{}
	}
	return s, nil
}

// Take makes charges as bucket.Group says and sets results[i] for charges[i].
// A bucket that would be kept anew at the bound is an error of Cause "full",
// for the whole call; a call that is denied anyway is answered. After an error
// nothing was charged.
func (s *Store) Take(ctx context.Context, charges []bucket.Charge, results []bucket.Result) error {
	if err := check(ctx, charges, results); err != nil {
		return err
	}
	c := s.calls.Get().(*call)
	defer c.done()
	c.find(charges)
	if c.make(charges, results) {
		return nil
	}
	s.sweep()
	if c.make(charges, results) {
		return nil
	}
	return errFull
}

// Len returns how many buckets are kept, none of them full. It drops the full
// ones first, locking a part of the store at a time.
func (s *Store) Len() int {
	s.sweep()
	return int(s.kept.Load())
}

// sweep drops every bucket that is full.
func (s *Store) sweep() {
	for i := range s.shards {
		for !s.sweepSome(&s.shards[i]) {
		}
	}
}

// sweepSome says that no more full buckets are in sh.
func (s *Store) sweepSome(sh *shard) bool {
	const atOnce = 64 // bounds how long charges wait
	sh.mu.Lock()
	defer sh.mu.Unlock()
	dropped, done := sh.sweep(s.now().UnixMicro(), atOnce)
	s.kept.Add(-int64(dropped))
	return done
}
