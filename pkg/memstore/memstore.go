// Package memstore keeps buckets in the memory of this process: the embedded
// store. Nothing survives a restart and nothing is shared with other replicas.
//
// It is bounded in bytes, and never makes room by forgetting a bucket that is
// not full: that would hand its owner a full one. What becomes of a new key
// that finds no room is an option. The package knows buckets and their keys,
// not rules or requests.
package memstore

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

const (
	// DefaultMaxBytes is how much memory a Store uses at most unless Options
	// say. It holds about 700,000 buckets of one limit.
	DefaultMaxBytes = 64 << 20
	// LeastMaxBytes is the smallest bound that Options may say.
	LeastMaxBytes = 1 << 20
	// MaxKeyLen is the longest key, in bytes.
	MaxKeyLen = 32 << 10
)

// OnFull is what a Store does with a new key that finds no room.
type OnFull uint8

const (
	// Deny answers as if the bucket under the new key were empty: nobody is
	// let past a limit for having no room, and those who have a bucket go on
	// as before. The wait that it answers is the limits', not until there is
	// room.
	Deny OnFull = iota
	// Fail sets the Err of the new key's result, of Cause "full": what is done
	// where a store fails decides. The request's other buckets go on as if it
	// had room.
	Fail
)

// Options are what New needs. The zero value is the documented default.
type Options struct {
	// MaxBytes bounds the memory that buckets and what finds them take. 0
	// means DefaultMaxBytes; LeastMaxBytes is the least. The last 16th of it
	// is for buckets that are there already and need more room. What the
	// garbage collector has not yet collected comes on top.
	MaxBytes int64
	// MaxKeys bounds the buckets that are not full. 0 means as many as fit
	// MaxBytes.
	MaxKeys int
	// OnFull is what becomes of a new key at one of the bounds. The zero
	// value is Deny.
	OnFull OnFull
	// Now is the clock, called under locks. Nil means the wall clock at New
	// and the monotonic clock since, so that a wall clock that is set gives
	// and takes nothing.
	Now func() time.Time
}

// A Store keeps buckets in memory. It is safe for concurrent use. It starts no
// goroutine and needs no closing: full buckets are dropped a few at a time by
// the charges that come after.
type Store struct {
	now     func() time.Time
	onFull  OnFull
	maxKeys int64
	kept    atomic.Int64
	refused atomic.Int64
	budget  budget
	seed    maphash.Seed
	calls   sync.Pool // of *call
	shards  [shards]shard
}

// New returns an empty Store.
func New(o Options) (*Store, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s := &Store{now: o.Now, onFull: o.OnFull, maxKeys: int64(o.MaxKeys), seed: maphash.MakeSeed()}
	s.budget.max = o.MaxBytes
	s.budget.used.Store(int64(unsafe.Sizeof(*s)))
	s.calls.New = func() any { return &call{store: s, slots: make([]slot, 0, 4)} }
	for i := range s.shards {
		s.shards[i].seed, s.shards[i].budget = s.seed, &s.budget
	}
	return s, nil
}

// check fills o in and names what is wrong with it.
func (o *Options) check() error {
	if o.MaxKeys == 0 {
		o.MaxKeys = 1<<63 - 1
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.Now == nil {
		start := time.Now()
		o.Now = func() time.Time { return start.Add(time.Since(start)) }
	}
	switch {
	case o.MaxKeys < 0:
		return fmt.Errorf("MaxKeys is %d, want 0 or more", o.MaxKeys)
	case o.MaxBytes < LeastMaxBytes:
		return fmt.Errorf("MaxBytes is %d, want 0 or at least %d", o.MaxBytes, LeastMaxBytes)
	case o.OnFull > Fail:
		return fmt.Errorf("OnFull is %d, want Deny or Fail", o.OnFull)
	}
	return nil
}

// Take makes charges as bucket.Group says and sets results[i] for charges[i].
// A bucket that would be kept anew at a bound goes by Options.OnFull; one that
// is denied anyway, or only looked at, is answered. After an error nothing was
// charged.
func (s *Store) Take(ctx context.Context, charges []bucket.Charge, results []bucket.Result) error {
	if err := check(ctx, charges, results); err != nil {
		return err
	}
	c := s.calls.Get().(*call)
	defer c.done()
	c.find(charges)
	if !c.make(charges, results, false) {
		s.sweep()
		c.make(charges, results, true)
	}
	return nil
}

// Len returns how many buckets are kept, none of them full. It drops the full
// ones first, locking a part of the store at a time.
func (s *Store) Len() int {
	s.sweep()
	return int(s.kept.Load())
}

// Bytes returns how much memory the store uses of MaxBytes, the full buckets
// that are still kept included.
func (s *Store) Bytes() int64 { return s.budget.used.Load() }

// Refused returns how many times a key found no room.
func (s *Store) Refused() int64 { return s.refused.Load() }

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
