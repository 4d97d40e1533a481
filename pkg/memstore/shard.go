package memstore

import (
	"encoding/binary"
	"hash/maphash"
	"sync"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// shards is the number of locks: one bit each in a uint64.
const shards = 64

// A shard is a share of the buckets, under one lock. It holds no pointer to
// any of them, so that the garbage collector has next to nothing to look at.
type shard struct {
	mu      sync.Mutex
	seed    maphash.Seed
	budget  *budget
	index   index // beside mu, which is looked at just before
	terms   terms
	queue   queue
	freed   uint64 // how many records were: refs from before may be of others
	records records
	_       [64]byte // away from the next shard's lock
}

// A record is a bucket that is kept: its place in the queue (4 bytes), its
// limits in terms (4), the length of its key (2), the key, the packed bucket.
type record []byte

const recordHead = 10

func (r record) place() int     { return int(binary.LittleEndian.Uint32(r)) }
func (r record) limits() uint32 { return binary.LittleEndian.Uint32(r[4:]) }
func (r record) key() []byte    { return r[recordHead:][:binary.LittleEndian.Uint16(r[8:])] }
func (r record) packed() []byte { return r[recordHead+int(binary.LittleEndian.Uint16(r[8:])):] }

func (r record) setPlace(i int)      { binary.LittleEndian.PutUint32(r, uint32(i)) }
func (r record) setLimits(id uint32) { binary.LittleEndian.PutUint32(r[4:], id) }

func (r record) setKey(key string) {
	binary.LittleEndian.PutUint16(r[8:], uint16(len(key)))
	copy(r[recordHead:], key)
}

func (sh *shard) record(f ref) record { return sh.records.at(f) }

// place is the placing of the shard's queue.
func (sh *shard) place(f ref, i int) { sh.record(f).setPlace(i) }

func (sh *shard) find(hash uint32, key string) (ref, bool) {
	return sh.index.find(hash, func(f ref) bool { return string(sh.record(f).key()) == key })
}

// bucket returns what a record keeps.
func (sh *shard) bucket(f ref) bucket.Bucket {
	r := sh.record(f)
	return bucket.Unpack(sh.terms.limits(r.limits()), r.packed())
}

// classFor returns the class of a record of b under key.
func classFor(key string, b bucket.Bucket) int {
	return classOf(recordHead + len(key) + b.PackedLen())
}

// room makes sure that insert finds what it needs, and does not use more than
// most bytes for that.
func (sh *shard) room(c int, most int64) bool {
	if slots, yes := sh.index.crowded(); yes {
		if !sh.budget.swap(indexBytes(slots), indexBytes(len(sh.index.slots)), most) {
			return false
		}
		sh.index.resize(slots)
	}
	if room, yes := sh.queue.crowded(); yes {
		if !sh.budget.swap(queueBytes(room), queueBytes(cap(sh.queue.dues)), most) {
			return false
		}
		sh.queue.resize(room)
	}
	return sh.roomIn(c, most)
}

// roomIn makes sure that a class has room for one more record.
func (sh *shard) roomIn(c int, most int64) bool {
	if !sh.records.full(c) {
		return true
	}
	if !sh.budget.swap(chunkBytes(c), 0, most) {
		return false
	}
	sh.records.grow(c)
	return true
}

// insert adds a record of b, for which there is room.
func (sh *shard) insert(hash uint32, key string, b bucket.Bucket) ref {
	f := sh.records.add(classFor(key, b))
	r := sh.record(f)
	r.setKey(key)
	r.setLimits(sh.terms.hold(b.Limits()))
	b.Pack(r.packed()[:0])
	sh.index.put(hash, f)
	sh.queue.push(f, fullAt(b), sh.place)
	return f
}

func fullAt(b bucket.Bucket) int64 {
	_, full := b.At()
	return full.UnixMicro()
}

// write has the record at f keep b, for which it is large enough.
func (sh *shard) write(f ref, b bucket.Bucket) {
	r := sh.record(f)
	id := r.limits()
	before := bucket.PackedFullAt(sh.terms.limits(id), r.packed())
	if !sh.terms.limits(id).Same(b.Limits()) {
		r.setLimits(sh.terms.hold(b.Limits()))
		sh.terms.release(id)
	}
	b.Pack(r.packed()[:0])
	// A later end is seen when the record is due, and nothing is due later than
	// it was full: that spares most charges the queue.
	if end := fullAt(b); end < before && end < sh.queue.dues[r.place()] {
		sh.queue.set(r.place(), end, sh.place)
	}
}

// reclass moves a record to another class, which has room for it.
func (sh *shard) reclass(hash uint32, f ref, c int) {
	to := sh.records.add(c)
	copy(sh.records.at(to), sh.records.at(f))
	sh.moved(hash, f, to)
	sh.free(f)
}

// moved says that a record lies elsewhere.
func (sh *shard) moved(hash uint32, from, to ref) {
	sh.index.move(hash, from, to)
	sh.queue.refs[sh.record(to).place()] = to
}

// drop forgets a record.
func (sh *shard) drop(hash uint32, f ref) {
	r := sh.record(f)
	sh.terms.release(r.limits())
	sh.queue.remove(r.place(), sh.place)
	sh.index.remove(hash, f)
	sh.free(f)
	sh.shrink()
}

// free frees a record that nothing refers to any more.
func (sh *shard) free(f ref) {
	sh.freed++
	if last := sh.records.free(f); last != f {
		sh.moved(sh.hash(f), last, f)
	}
	if sh.records.shrink(f.class(), sh.budget.spare()) {
		sh.budget.give(chunkBytes(f.class()))
	}
}

// shrink gives back what the index and the queue no longer need.
func (sh *shard) shrink() {
	if slots, yes := sh.index.sparse(); yes {
		sh.budget.give(indexBytes(len(sh.index.slots)) - indexBytes(slots))
		sh.index.resize(slots)
	}
	if room, yes := sh.queue.sparse(); yes {
		sh.budget.give(queueBytes(cap(sh.queue.dues)) - queueBytes(room))
		sh.queue.resize(room)
	}
}

// hash is that of the record's key, as the index has it.
func (sh *shard) hash(f ref) uint32 {
	return uint32(maphash.Bytes(sh.seed, sh.record(f).key()) >> 32)
}

// sweep looks at no more than atMost records that are due and drops the full
// ones. It says how many that were, and whether none is left that is due.
func (sh *shard) sweep(now int64, atMost int) (dropped int, done bool) {
	for range atMost {
		if len(sh.queue.dues) == 0 || sh.queue.dues[0] > now {
			return dropped, true
		}
		f := sh.queue.refs[0]
		r := sh.record(f)
		if end := bucket.PackedFullAt(sh.terms.limits(r.limits()), r.packed()); end > now {
			sh.queue.set(0, end, sh.place)
			continue
		}
		sh.drop(sh.hash(f), f)
		dropped++
	}
	return dropped, false
}
