package memstore

import (
	"math/bits"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// Put keeps b, settled at this moment by whatever clock, under key in place of
// what is there, and says whether it does. A key that is not there yet takes
// up no more than the first half of MaxBytes, so that what others tell leaves
// room for what is charged here.
func (s *Store) Put(key string, b bucket.Bucket) bool {
	c, slot := s.only(key)
	defer c.done()
	c.lock()
	defer c.unlock()
	now := s.now()
	c.sweep(now.UnixMicro())
	slot.bucket = b.AsOf(now)
	slot.look()
	switch {
	case b.Full():
	case slot.known && !slot.fit(), !slot.known && !c.insert(slot, s.budget.max/2):
		return false
	}
	c.keep()
	return true
}

// PutEach is Put of each of the buckets, under the key at its place. No key
// comes twice. It keeps neither slice.
func (s *Store) PutEach(keys []string, buckets []bucket.Bucket) {
	for len(keys) > 0 {
		n := min(len(keys), fewSlots)
		s.putFew(keys[:n], buckets[:n])
		keys, buckets = keys[n:], buckets[n:]
	}
}

// putFew is PutEach of fewSlots at most.
func (s *Store) putFew(keys []string, buckets []bucket.Bucket) {
	var few [fewSlots]place
	places, locks := few[:len(keys)], uint64(0)
	for i, key := range keys {
		n, hash := s.shardOf(key)
		places[i] = place{shard: &s.shards[n], hash: hash}
		locks |= 1 << n
	}
	s.lock(locks)
	now := s.now()
	replace(places, keys, buckets, now)
	s.insertNew(places, keys, buckets, now)
	s.unlock(locks)
	for i := range places {
		if !places[i].done {
			s.Put(keys[i], buckets[i])
		}
	}
}

// A place is where a key may be.
type place struct {
	shard *shard
	hash  uint32
	ref   ref // of a record, if there is one of that hash
	done  bool
}

// replace writes the buckets whose keys are there already with as much room, as
// nearly always. Each step is taken for all before the next: memory that is far
// is waited for once and not once for each.
func replace(places []place, keys []string, buckets []bucket.Bucket, now time.Time) {
	for i := range places {
		p := &places[i]
		p.ref, p.done = p.shard.index.first(p.hash)
	}
	for i := range places {
		p := &places[i]
		p.done = p.done && string(p.shard.record(p.ref).key()) == keys[i]
	}
	for i := range places {
		p, b := &places[i], &buckets[i]
		if p.done = p.done && !b.Full() && p.ref.class() == classFor(keys[i], *b); p.done {
			p.shard.write(p.ref, b.AsOf(now))
		}
	}
}

// insertNew keeps the buckets of keys of whose hash there is none.
func (s *Store) insertNew(places []place, keys []string, buckets []bucket.Bucket, now time.Time) {
	for i := range places {
		p := &places[i]
		if p.done || buckets[i].Full() {
			continue
		}
		if _, found := p.shard.index.first(p.hash); found {
			continue
		}
		dropped, _ := p.shard.sweep(now.UnixMicro(), 2)
		s.kept.Add(-int64(dropped))
		s.insert(p.shard, p.hash, keys[i], buckets[i].AsOf(now), s.budget.max/2)
		p.done = true // with or without room
	}
}

// lock locks the shards of which all has the bits, in their order, so that no
// two calls wait for each other.
func (s *Store) lock(all uint64) {
	for m := all; m != 0; m &= m - 1 {
		s.shards[bits.TrailingZeros64(m)].mu.Lock()
	}
}

func (s *Store) unlock(all uint64) {
	for m := all; m != 0; m &= m - 1 {
		s.shards[bits.TrailingZeros64(m)].mu.Unlock()
	}
}

// Bucket returns the bucket under key, settled under ls at this moment.
func (s *Store) Bucket(key string, ls *bucket.Limits) bucket.Bucket {
	c, slot := s.only(key)
	defer c.done()
	c.lock()
	defer c.unlock()
	if slot.look(); !slot.known {
		return bucket.Bucket{}
	}
	return slot.shard.bucket(slot.ref).Settle(ls, s.now())
}

// only returns a call of one key.
func (s *Store) only(key string) (*call, *slot) {
	c := s.calls.Get().(*call)
	one := [1]bucket.Charge{{Key: key}}
	c.find(one[:])
	return c, &c.slots[0]
}
