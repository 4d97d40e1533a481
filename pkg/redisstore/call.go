package redisstore

import (
	"encoding/binary"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// A group is the charges of one request, and where their results go.
type group struct {
	charges []bucket.Charge
	results []bucket.Result
	flags   byte // for the script: failed, or told
	sums    []bucket.Sum
}

// What the script is told of a charge; failed and told with the first of a
// group.
const (
	begins   = 1
	isShadow = 2
	failed   = 4  // elsewhere: nothing is charged, but what owes
	told     = 8  // what was and what is stored is to be answered too
	looks    = 16 // at what an earlier one left, under other limits
)

// A call is what one run of the script is asked, and how its reply is read.
type call struct {
	prefix string
	groups []group
	keys   []any // texts, each once
	places map[string]uint32
	sets   limitSets
	packed []byte
	asks   []ask // in the reply's order

	slot   uint16
	behind bool  // it charges nothing, and looks at what jobs before it give back
	origin []int // of each charge of the only group, its place in a larger one

	err    error
	denied bool     // a charge that is not shadow has no room
	now    int64    // µs: when it was made
	stored []string // of a call that is told: for each key what was stored, and what is
}

// An ask is one charge as the script sees it: all that a group charges one
// bucket with. A charge that is summed into an earlier one is asked only if
// its limits are others, and then looks.
type ask struct {
	group, charge int
	first         int // the ask that charges the bucket; itself but for a look
	cost          int64
	made          bool
}

// newCall returns the call of groups, at about now.
func newCall(prefix string, groups []group, now time.Time) *call {
	c := &call{prefix: prefix, groups: groups, places: map[string]uint32{}, sets: limitSets{now: now}}
	for g := range groups {
		groups[g].sums = bucket.Sums(nil, groups[g].charges)
		first := len(c.asks)
		c.add(g, false)
		c.add(g, true)
		c.pack(first)
	}
	return c
}

// add asks for the charges of group g that are shadow or that are not.
func (c *call) add(g int, shadow bool) {
	charges, sums := c.groups[g].charges, c.groups[g].sums
	asks := make([]int, len(charges)) // of each charge that is a bucket's first
	for i := range charges {
		if charges[i].Shadow != shadow {
			continue
		}
		first := sums[i].First
		a := ask{group: g, charge: i, first: len(c.asks), cost: sums[i].Cost}
		if first < i {
			if charges[first].Limits == charges[i].Limits {
				continue
			}
			a.first = asks[first]
		}
		asks[i] = len(c.asks)
		c.asks = append(c.asks, a)
	}
}

// pack writes the asks of one group, of which start is the first.
func (c *call) pack(start int) {
	for i := start; i < len(c.asks); i++ {
		a := &c.asks[i]
		charge := &c.groups[a.group].charges[a.charge]
		var flags byte
		if i == start {
			flags = begins | c.groups[a.group].flags
		}
		if charge.Shadow {
			flags |= isShadow
		}
		cost := a.cost
		if a.first != i {
			flags, cost = flags|looks, 0
		}
		c.packed = append(c.packed, flags)
		c.packed = binary.BigEndian.AppendUint32(c.packed, c.key(charge.Key))
		c.packed = binary.BigEndian.AppendUint32(c.packed, c.sets.place(charge.Limits))
		c.packed = append7(c.packed, cost)
	}
}

// key returns the place of key in keys, from 1.
func (c *call) key(key string) uint32 {
	place, ok := c.places[key]
	if !ok {
		c.keys = append(c.keys, c.prefix+key)
		place = uint32(len(c.keys))
		c.places[key] = place
	}
	return place
}
