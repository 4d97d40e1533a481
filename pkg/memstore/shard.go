package memstore

import (
	"container/heap"
	"sync"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// shards is the number of locks: one bit each in a uint64.
const shards = 64

// A shard is a share of the buckets, under one lock.
type shard struct {
	mu      sync.Mutex
	entries map[string]*entry
	due     queue
	_       [64]byte // away from the next shard's lock
}

// An entry is a bucket that is kept.
type entry struct {
	key    string
	bucket bucket.Bucket
	due    int64 // µs: when to look whether it is full, never later than that
	place  int   // in the queue
}

func (e *entry) fullAt() int64 {
	_, full := e.bucket.At()
	return full.UnixMicro()
}

// keep writes a slot back. It says that the bucket is no longer kept.
func (sh *shard) keep(s *slot) bool {
	switch {
	case s.entry == nil && s.bucket.Full():
		return false
	case s.entry == nil:
		e := &entry{key: s.key, bucket: s.bucket}
		e.due = e.fullAt()
		sh.entries[e.key] = e
		heap.Push(&sh.due, e)
		return false
	case s.bucket.Full():
		sh.drop(s.entry)
		return true
	}
	s.entry.bucket = s.bucket
	// A later end is seen when the entry is due, which spares each charge the
	// queue.
	if end := s.entry.fullAt(); end < s.entry.due {
		s.entry.due = end
		heap.Fix(&sh.due, s.entry.place)
	}
	return false
}

// sweep looks at no more than atMost buckets that are due and drops the full
// ones. It says how many that were, and whether none is left that is due.
func (sh *shard) sweep(now int64, atMost int) (dropped int, done bool) {
	for range atMost {
		if len(sh.due) == 0 || sh.due[0].due > now {
			return dropped, true
		}
		e := sh.due[0]
		if end := e.fullAt(); end > now {
			e.due = end
			heap.Fix(&sh.due, 0)
			continue
		}
		sh.drop(e)
		dropped++
	}
	return dropped, false
}

func (sh *shard) drop(e *entry) {
	delete(sh.entries, e.key)
	heap.Remove(&sh.due, e.place)
}

// A queue is a heap of entries, the one that is due first on top.
type queue []*entry

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due < q[j].due }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

// Push is for package heap.
func (q *queue) Push(e any) {
	e.(*entry).place = len(*q)
	*q = append(*q, e.(*entry))
}

// Pop is for package heap.
func (q *queue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return e
}
