package memstore

import (
	"context"
	"errors"
	"hash/maphash"
	"math/bits"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// A call is one Take: its buckets and the shards that it locks. Calls are used
// again, so that a charge of kept buckets allocates nothing.
type call struct {
	store  *Store
	slots  []slot
	shards uint64 // a bit for each
}

// A slot is a bucket of a call, worked on apart until the call is known to
// find room.
type slot struct {
	key    string
	shard  *shard
	entry  *entry // nil for a full bucket
	bucket bucket.Bucket
}

// find makes a slot for each key.
func (c *call) find(charges []bucket.Charge) {
	for i := range charges {
		key := charges[i].Key
		if c.at(key) != nil {
			continue
		}
		n := maphash.String(c.store.seed, key) % shards
		c.slots = append(c.slots, slot{key: key, shard: &c.store.shards[n]})
		c.shards |= 1 << n
	}
}

// done gives c back, holding on to nothing.
func (c *call) done() {
	clear(c.slots)
	c.slots, c.shards = c.slots[:0], 0
	c.store.calls.Put(c)
}

func (c *call) at(key string) *bucket.Bucket {
	for i := range c.slots {
		if c.slots[i].key == key {
			return &c.slots[i].bucket
		}
	}
	return nil
}

// make makes the charges. It says that there was room; without, nothing has
// changed.
func (c *call) make(charges []bucket.Charge, results []bucket.Result) bool {
	c.lock()
	defer c.unlock()
	now := c.store.now()
	c.load(now.UnixMicro())
	bucket.Group(charges, results, now, c.at)
	if !c.reserve() {
		return false
	}
	for i := range c.slots {
		s := &c.slots[i]
		if s.shard.keep(s) {
			c.store.kept.Add(-1)
		}
	}
	return true
}

// load reads the buckets, and drops a few of the full ones that lie with them:
// more than a call can add.
func (c *call) load(now int64) {
	for i := range c.slots {
		s := &c.slots[i]
		dropped, _ := s.shard.sweep(now, 2)
		c.store.kept.Add(-int64(dropped))
	}
	for i := range c.slots {
		s := &c.slots[i]
		s.entry, s.bucket = s.shard.entries[s.key], bucket.Bucket{}
		if s.entry != nil {
			s.bucket = s.entry.bucket
		}
	}
}

// reserve counts the buckets that are to be kept anew, if there is room.
func (c *call) reserve() bool {
	var fresh int64
	for i := range c.slots {
		if c.slots[i].entry == nil && !c.slots[i].bucket.Full() {
			fresh++
		}
	}
	if fresh == 0 || c.store.kept.Add(fresh) <= c.store.max {
		return true
	}
	c.store.kept.Add(-fresh)
	return false
}

// lock locks the shards in their order, so that no two calls wait for each
// other.
func (c *call) lock() {
	for m := c.shards; m != 0; m &= m - 1 {
		c.store.shards[bits.TrailingZeros64(m)].mu.Lock()
	}
}

func (c *call) unlock() {
	for m := c.shards; m != 0; m &= m - 1 {
		c.store.shards[bits.TrailingZeros64(m)].mu.Unlock()
	}
}

// A failure says why a Store did not answer.
type failure struct {
	cause string
	err   error
}

// Cause is a word for a metric's label: full, canceled, timeout or other.
func (f *failure) Cause() string { return f.cause }

func (f *failure) Error() string { return f.err.Error() }

func (f *failure) Unwrap() error { return f.err }

var errFull = &failure{"full", errors.New("memory store is full of buckets that are in use")}

func check(ctx context.Context, charges []bucket.Charge, results []bucket.Result) error {
	switch err := ctx.Err(); {
	case errors.Is(err, context.DeadlineExceeded):
		return &failure{"timeout", err}
	case err != nil:
		return &failure{"canceled", err}
	case len(charges) != len(results):
		return &failure{"other", errors.New("charges and results differ in length")}
	}
	for i := range charges {
		if charges[i].Limits == nil {
			return &failure{"other", errors.New("a charge has no limits")}
		}
	}
	return nil
}
