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
}

// What the script is told of a charge; the last two with the first of a group.
const (
	begins   = 1
	isShadow = 2
	failed   = 4 // elsewhere: nothing is charged
	told     = 8 // what was and what is stored is to be answered too
)

// A call is what one run of the script is asked, and how its reply is read.
type call struct {
	prefix     string
	groups     []group
	keys       []any // texts, each once
	places     map[string]uint32
	sets       []*bucket.Limits
	packedSets []byte
	packed     []byte
	asks       []ask // in the reply's order

	slot   uint16
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

func newCall(prefix string, groups []group) *call {
	c := &call{prefix: prefix, groups: groups, places: map[string]uint32{}}
	for g := range groups {
		first := len(c.asks)
		c.add(g, false)
		c.add(g, true)
		c.pack(first)
	}
	return c
}

// add asks for the charges of group g that are shadow or that are not.
func (c *call) add(g int, shadow bool) {
	charges := c.groups[g].charges
	start := len(c.asks)
	for i := range charges {
		if charges[i].Shadow != shadow {
			continue
		}
		cost, first := bucket.Total(charges, i)
		a := ask{group: g, charge: i, first: len(c.asks), cost: cost}
		if first < i {
			if charges[first].Limits == charges[i].Limits {
				continue
			}
			for a.first = start; c.asks[a.first].charge != first; {
				a.first++
			}
		}
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
			cost = 0
		}
		c.packed = append(c.packed, flags)
		c.packed = binary.BigEndian.AppendUint32(c.packed, c.key(charge.Key))
		c.packed = binary.BigEndian.AppendUint32(c.packed, c.set(charge.Limits))
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

// set returns the place of ls in sets, from 1.
func (c *call) set(ls *bucket.Limits) uint32 {
	for i := range c.sets {
		if c.sets[i] == ls {
			return uint32(i) + 1
		}
	}
	c.sets = append(c.sets, ls)
	c.packedSets = appendSet(c.packedSets, ls)
	return uint32(len(c.sets))
}

// check refuses limits that the script would count as others.
func (c *call) check() error {
	for _, ls := range c.sets {
		for i := range ls.Len() {
			if ls.Debt() || ls.At(i).Refill > bucket.Interval {
				return errLimits
			}
		}
	}
	return nil
}

// The modes of a limit in the script and in its values.
const (
	greedy = iota
	interval
	greedyMS // in ticks of a millisecond
)

func appendSet(b []byte, ls *bucket.Limits) []byte {
	b = append(b, byte(ls.Len()))
	for i := range ls.Len() {
		t := ls.Terms(i)
		b = append(b, mode(t))
		b = binary.BigEndian.AppendUint32(b, t.Name)
		for _, n := range []int64{t.PerMS, t.Tokens, t.Burst, t.Unit, t.Step} {
			b = append7(b, n)
		}
	}
	return b
}

func mode(t bucket.Terms) byte {
	switch {
	case t.Refill == bucket.Interval:
		return interval
	case t.Tick == 1000:
		return greedyMS
	default:
		return greedy
	}
}

// append7 appends n in 7 bytes, which hold ±2^55.
func append7(b []byte, n int64) []byte {
	var eight [8]byte
	binary.BigEndian.PutUint64(eight[:], uint64(n))
	return append(b, eight[1:]...)
}

// What the script answers for a charge.
const (
	noRoom = iota
	charged
	room // but not charged
	foreign
)

// read sets the results from the script's reply.
func (c *call) read(r reply) error {
	reply := r.numbers
	if len(reply) == 0 {
		return errReply
	}
	c.now, c.stored = reply[0], r.texts
	now, reply := time.UnixMicro(reply[0]), reply[1:]
	for i := range c.asks {
		n, ok := c.readAsk(&c.asks[i], now, reply)
		if !ok {
			return errReply
		}
		reply = reply[n:]
	}
	if len(reply) > 0 {
		return errReply
	}
	for _, g := range c.groups {
		g.share()
	}
	return nil
}

// readAsk sets the result of a from the head of reply and returns how many
// numbers that took.
func (c *call) readAsk(a *ask, now time.Time, reply []int64) (int, bool) {
	g := &c.groups[a.group]
	ls := g.charges[a.charge].Limits
	if len(reply) > 0 && reply[0] == foreign {
		g.results[a.charge] = bucket.Result{Err: failure("bucket", errForeign)}
		return 1, true
	}
	n := 1 + 2*ls.Len()
	if len(reply) < n {
		return 0, false
	}
	var parts [bucket.MaxLimits]bucket.Part
	for i := range ls.Len() {
		parts[i] = bucket.Part{Spent: reply[1+2*i], Aux: reply[2+2*i]}
	}
	a.made = reply[0] == charged
	c.denied = c.denied || (reply[0] == noRoom && !g.charges[a.charge].Shadow)
	b := bucket.FromParts(ls, now, parts[:ls.Len()])
	g.results[a.charge] = b.Result(ls, a.cost, c.asks[a.first].made)
	return n, true
}

// share gives a charge that was summed into an earlier one the same result.
func (g group) share() {
	for i := range g.charges {
		_, first := bucket.Total(g.charges, i)
		if first < i && g.charges[first].Limits == g.charges[i].Limits {
			g.results[i] = g.results[first]
		}
	}
}
