package memstore

import "github.com/sluice-mesh/sluice/pkg/bucket"

// Put keeps b, settled at this moment by whatever clock, under key in place of
// what is there, and says whether it does. A key that is not there yet takes
// up no more than the first half of MaxBytes, so that what others tell leaves
// room for what is charged here.
func (s *Store) Put(key string, b bucket.Bucket) bool {
	if s.replace(key, b) {
		return true
	}
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

// replace is Put where a bucket of the same size is there already, as nearly
// always, and does without a call. It says whether there was one.
func (s *Store) replace(key string, b bucket.Bucket) bool {
	if b.Full() {
		return false
	}
	n, hash := s.shardOf(key)
	sh := &s.shards[n]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	f, known := sh.find(hash, key)
	if !known || f.class() != classFor(key, b) {
		return false
	}
	sh.write(f, b.AsOf(s.now()))
	return true
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
