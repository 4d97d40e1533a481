package memstore

import (
	"hash/maphash"
	"slices"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// A call is one Take: its buckets and the shards that it locks. Calls are used
// again, so that a charge of kept buckets allocates nothing.
type call struct {
	store  *Store
	slots  []slot
	places map[string]int // of slots, where there are many
	shards uint64         // a bit for each
}

// fewSlots are looked through without a map.
const fewSlots = 16

// A slot is a bucket of a call, worked on apart until the call is known to
// find room.
type slot struct {
	key     string
	hash    uint32
	shard   *shard
	bucket  bucket.Bucket
	ref     ref    // as of freed
	freed   uint64 // of shard
	known   bool   // ref is a record
	fresh   bool   // made by this call
	refused bool   // found no room
}

// find makes a slot for each key.
func (c *call) find(charges []bucket.Charge) {
	for i := range charges {
		key := charges[i].Key
		if c.slot(key) != nil {
			continue
		}
		n, hash := c.store.shardOf(key)
		c.add(slot{key: key, hash: hash, shard: &c.store.shards[n]})
		c.shards |= 1 << n
	}
}

// shardOf returns the place of the shard that has key, and what that finds it
// by.
func (s *Store) shardOf(key string) (n uint64, hash uint32) {
	all := maphash.String(s.seed, key)
	return all % shards, uint32(all >> 32)
}

func (c *call) add(s slot) {
	c.slots = append(c.slots, s)
	switch n := len(c.slots); {
	case n == fewSlots+1:
		c.places = make(map[string]int, 4*fewSlots)
		for i := range c.slots {
			c.places[c.slots[i].key] = i
		}
	case n > fewSlots:
		c.places[s.key] = n - 1
	}
}

// done gives c back, holding on to nothing.
func (c *call) done() {
	clear(c.slots)
	c.slots, c.places, c.shards = c.slots[:0], nil, 0
	c.store.calls.Put(c)
}

func (c *call) slot(key string) *slot {
	if c.places != nil {
		if i, ok := c.places[key]; ok {
			return &c.slots[i]
		}
		return nil
	}
	for i := range c.slots {
		if c.slots[i].key == key {
			return &c.slots[i]
		}
	}
	return nil
}

// at is the lookup of bucket.Group: nil for a key that may not be charged.
func (c *call) at(key string) *bucket.Bucket {
	s := c.slot(key)
	if s.refused && c.store.onFull == Fail {
		return nil
	}
	return &s.bucket
}

// make makes the charges. It says that there was room; without, nothing has
// changed unless refuse says to go on without the keys that found none.
func (c *call) make(charges []bucket.Charge, results []bucket.Result, refuse bool) bool {
	c.lock()
	defer c.unlock()
	now := c.store.now()
	c.sweep(now.UnixMicro())
	for {
		c.load(charges, now)
		bucket.Group(charges, results, now, c.at)
		if c.place() {
			break
		}
		if !refuse {
			c.undo()
			return false
		}
	}
	c.keep()
	c.fail(charges, results)
	return true
}

// sweep drops a few of the full buckets that lie with those of the call: more
// than it can add.
func (c *call) sweep(now int64) {
	for i := range c.slots {
		dropped, _ := c.slots[i].shard.sweep(now, 2)
		c.store.kept.Add(-int64(dropped))
	}
}

// load reads the buckets.
func (c *call) load(charges []bucket.Charge, now time.Time) {
	refused := false
	for i := range c.slots {
		s := &c.slots[i]
		s.bucket = bucket.Bucket{}
		if s.look(); s.known && !s.fresh {
			s.bucket = s.shard.bucket(s.ref)
		}
		refused = refused || s.refused
	}
	if refused && c.store.onFull == Deny {
		c.drain(charges, now)
	}
}

// drain empties the buckets that found no room, under the first limits that
// they are charged with.
func (c *call) drain(charges []bucket.Charge, now time.Time) {
	for _, charge := range slices.Backward(charges) {
		if s := c.slot(charge.Key); s.refused {
			s.bucket = bucket.Drained(charge.Limits, now)
		}
	}
}

// look sets where the record of s is.
func (s *slot) look() {
	if !s.known || s.freed != s.shard.freed {
		s.ref, s.known = s.shard.find(s.hash, s.key)
		s.freed = s.shard.freed
	}
}

// place sees to it that all buckets find room, and refuses those that do not.
func (c *call) place() bool {
	all := true
	for i := range c.slots {
		s := &c.slots[i]
		if s.bucket.Full() || s.refused {
			continue
		}
		if s.look(); (s.known && !s.fit()) || (!s.known && !c.insert(s, c.store.budget.forNew())) {
			s.refused, all = true, false
		}
	}
	return all
}

// fit sees to it that the record of s, which is there, has room for its bucket.
func (s *slot) fit() bool {
	class := classFor(s.key, s.bucket)
	if class <= s.ref.class() {
		return true
	}
	if !s.shard.roomIn(class, s.shard.budget.max) {
		return false
	}
	s.shard.reclass(s.hash, s.ref, class)
	return true
}

// insert makes a record for s, if there is room within most bytes.
func (c *call) insert(s *slot, most int64) bool {
	s.ref, s.known = c.store.insert(s.shard, s.hash, s.key, s.bucket, most)
	s.fresh = s.known
	return s.known
}

// insert makes a record of b, if there is room within most bytes.
func (s *Store) insert(sh *shard, hash uint32, key string, b bucket.Bucket, most int64) (f ref, made bool) {
	if s.kept.Add(1) > s.maxKeys || !sh.room(classFor(key, b), most) {
		s.kept.Add(-1)
		return 0, false
	}
	return sh.insert(hash, key, b), true
}

// keep writes the buckets back.
func (c *call) keep() {
	for i := range c.slots {
		s := &c.slots[i]
		s.look()
		switch {
		case !s.known || s.refused:
		case s.bucket.Full():
			c.drop(s)
		default:
			s.shard.write(s.ref, s.bucket)
			s.tighten()
		}
	}
}

// tighten moves a record that takes up much more than it needs.
func (s *slot) tighten() {
	class := classFor(s.key, s.bucket)
	if 2*sizeOf(class) < sizeOf(s.ref.class()) && s.shard.roomIn(class, s.shard.budget.forNew()) {
		s.shard.reclass(s.hash, s.ref, class)
	}
}

func (c *call) drop(s *slot) {
	s.shard.drop(s.hash, s.ref)
	s.known = false
	c.store.kept.Add(-1)
}

// undo drops what the call has made.
func (c *call) undo() {
	for i := range c.slots {
		s := &c.slots[i]
		s.refused = false
		if s.fresh {
			s.look()
			c.drop(s)
			s.fresh = false
		}
	}
}

// fail sets the results of the keys that found no room.
func (c *call) fail(charges []bucket.Charge, results []bucket.Result) {
	refused := int64(0)
	for i := range c.slots {
		if c.slots[i].refused {
			refused++
		}
	}
	if refused == 0 {
		return
	}
	c.store.refused.Add(refused)
	for i := range charges {
		if s := c.slot(charges[i].Key); s.refused && c.store.onFull == Fail {
			results[i] = bucket.Result{Err: errFull}
		}
	}
}

func (c *call) lock()   { c.store.lock(c.shards) }
func (c *call) unlock() { c.store.unlock(c.shards) }
