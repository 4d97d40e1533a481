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
	leases   = 32 // too
)

// A call is what one run of the script is asked, and how its reply is read.
type call struct {
	prefix string
	groups []group
	next   []int // of each group, the next that is made together with it; 0 is none
	keys   keys
	sets   limitSets
	packed []byte
	leases []byte // packed
	asks   []ask  // in the reply's order
	job    job

	slot    uint16
	behind  bool     // it charges nothing, and looks at what jobs before it give back
	origin  []int    // of each charge of the only group, its place in a larger one
	waiters []*entry // for each group who waits for it; none where the maker of the call does
	claimed bool     // they are sure to wait until they are answered
	goesOn  bool     // when its batch is over

	err    error
	stale  bool     // it was not made: a calendar's running period is another
	denied bool     // a charge that is not shadow has no room
	now    int64    // µs: when it was made
	stored []string // of a call that is told: for each key what was stored, and what is
}

// An ask is one charge as the script sees it: all that a group charges one
// bucket with. A charge that is summed into an earlier one is asked only if
// its limits are others, and then looks.
//
// Groups that ask the same are made together, and are one group here.
type ask struct {
	group, charge int
	last          int // the last of the groups that are made together
	times         int // how many those are
	first         int // the ask that charges the bucket; itself but for a look
	cost          int64
	made          bool
	key           uint32 // its place among the keys
}

// newCall returns the call of groups, at about now.
func newCall(prefix string, groups []group, now time.Time) *call {
	c := new(call)
	c.begin(prefix, 0, now)
	for _, g := range groups {
		g.sums = bucket.Sums(nil, g.charges)
		c.charge(g)
	}
	return c
}

// begin makes c, which is empty, a call in slot at about now.
func (c *call) begin(prefix string, slot uint16, now time.Time) {
	c.prefix, c.slot, c.sets.now = prefix, slot, now
}

// empty lets go of all that c refers to, and keeps the room it has.
func (c *call) empty() {
	clear(c.groups)
	clear(c.waiters)
	clear(c.job.args)
	c.keys.reset()
	c.sets.reset()
	*c = call{
		groups: c.groups[:0], next: c.next[:0], keys: c.keys, sets: c.sets, packed: c.packed[:0], leases: c.leases[:0], asks: c.asks[:0],
		waiters: c.waiters[:0], job: job{args: c.job.args[:0]},
	}
}

// charge adds g, of which the sums are known.
func (c *call) charge(g group) {
	c.groups, c.next = append(c.groups, g), append(c.next, 0)
	first := len(c.asks)
	if c.joins(len(c.groups) - 1) {
		return
	}
	c.add(len(c.groups)-1, false)
	c.add(len(c.groups)-1, true)
	c.pack(first)
}

// add asks for the charges of group g that are shadow or that are not.
func (c *call) add(g int, shadow bool) {
	charges, sums := c.groups[g].charges, c.groups[g].sums
	var few [16]int
	asks := few[:] // of each charge that is a bucket's first
	if len(charges) > len(few) {
		asks = make([]int, len(charges))
	}
	for i := range charges {
		if charges[i].Shadow != shadow {
			continue
		}
		first := sums[i].First
		a := ask{group: g, charge: i, last: g, times: 1, first: len(c.asks), cost: sums[i].Cost}
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
		if lease := c.groups[a.group].lease(); lease != nil {
			flags |= leases
			c.packLease(lease)
		}
		if charge.Shadow {
			flags |= isShadow
		}
		cost := a.cost
		if a.first != i {
			flags, cost = flags|looks, 0
		}
		c.packed = append(c.packed, flags)
		a.key = c.keys.place(c.prefix, charge.Key)
		c.keys.last[a.key-1] = i
		c.packed = binary.BigEndian.AppendUint32(c.packed, a.key)
		c.packed = binary.BigEndian.AppendUint32(c.packed, c.sets.place(charge.Limits))
		c.packed = append(append7(c.packed, cost), byte(a.times))
	}
}

// askSize is how many bytes pack writes of an ask.
const askSize = 17

// lease returns what else is asked for g, nil for nothing.
func (g *group) lease() *bucket.Lease {
	if len(g.charges) != 1 || g.charges[0].Shadow {
		return nil
	}
	return g.charges[0].Lease
}

// packLease writes l as lua/take.lua says.
func (c *call) packLease(l *bucket.Lease) {
	for _, n := range [...]int64{l.Want, l.For.Microseconds(), l.Back, l.Spent, l.Since, l.Ends, l.Sooner} {
		c.leases = append7(c.leases, min(max(n, -1<<53), 1<<53))
	}
}

// keys are the texts that a script is told of, each once, one after the other.
type keys struct {
	places map[string]uint32
	text   []byte
	list   []text
	last   []int // of each the last ask
}

// A text goes to the server as it is, without a copy of it for each sending.
type text []byte

// MarshalBinary returns t itself.
func (t *text) MarshalBinary() ([]byte, error) { return *t, nil }

// place returns the place of prefix and key, from 1.
func (k *keys) place(prefix, key string) uint32 {
	place, known := k.places[key]
	if known {
		return place
	}
	if k.places == nil {
		k.places = map[string]uint32{}
	}
	// Where the text has to grow, those before keep the old one.
	from := len(k.text)
	k.text = append(append(k.text, prefix...), key...)
	k.list = append(k.list, k.text[from:])
	k.last = append(k.last, 0)
	place = uint32(len(k.list))
	k.places[key] = place
	return place
}

func (k *keys) reset() {
	clear(k.places)
	k.text, k.list, k.last = k.text[:0], k.list[:0], k.last[:0]
}
