package collapse

import (
	"math/bits"
	"sync"
	"time"
)

const (
	slots = 64
	// many is how many different addresses within peerWindow are more than a
	// client of its own would have.
	many       = 32
	peerWindow = 10 * time.Minute
)

// peers are those who bring forwarded addresses that are not believed: the
// ones that do so most, in a table of a fixed size.
type peers struct {
	mu    sync.Mutex
	slots [slots]peer
}

// A peer is one, by its hash, and a bitmap of the hashes of what it brings.
// It has no more bits set than it brought different addresses.
type peer struct {
	id     uint64
	weight int
	since  time.Time
	seen   [4]uint64
	told   bool
}

// bring notes that the peer id brings an address. It says, once for a peer in
// a window, that there are many.
func (ps *peers) bring(id, address uint64, now time.Time) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := &ps.slots[id%slots]
	if p.id != id && p.weight > 0 && now.Sub(p.since) < peerWindow {
		p.weight-- // so that who comes more often gets the slot
		return false
	}
	if p.id != id || now.Sub(p.since) >= peerWindow {
		*p = peer{id: id, since: now}
	}
	p.weight++
	p.seen[address>>6%4] |= 1 << (address % 64)
	if p.told || p.distinct() < many {
		return false
	}
	p.told = true
	return true
}

func (p *peer) distinct() int {
	n := 0
	for _, word := range p.seen {
		n += bits.OnesCount64(word)
	}
	return n
}

const (
	// least is how many requests of a rule say something about its keys.
	least = 100
	// nearlyAll is the share of them, in percent, that one key must not have.
	nearlyAll = 95
	// ruleWindow is the shortest time that is looked at, staleWindow the
	// longest.
	ruleWindow  = time.Minute
	staleWindow = 10 * time.Minute
)

// traffic is what came to one rule: the key that may have most of it, found
// by majority vote, and the least that this key had.
type traffic struct {
	by string // what the rule tells callers apart by

	mu    sync.Mutex
	since time.Time
	key   uint64
	votes int
	hits  int // of key, since it was found
	total int
}

// count notes a request with a key. It says, once a window at its end, that
// one key had nearly all.
func (t *traffic) count(key uint64, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	age := now.Sub(t.since)
	ended := age >= ruleWindow && t.total >= least
	one := ended && t.hits*100 >= t.total*nearlyAll
	if ended || age >= staleWindow {
		t.since, t.votes, t.hits, t.total = now, 0, 0, 0
	}
	t.vote(key)
	return one
}

func (t *traffic) vote(key uint64) {
	t.total++
	switch {
	case t.votes == 0:
		t.key, t.votes, t.hits = key, 1, 1
	case t.key == key:
		t.votes++
		t.hits++
	default:
		t.votes--
	}
}
