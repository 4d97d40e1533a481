package policy

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/descriptors"
)

// An entryNode is what may follow some entries of a descriptor. Its rules are
// those whose descriptor ends here.
type entryNode struct {
	next  map[string]*entryNext // by key
	rules []int32
}

// An entryNext is what may follow an entry of one key.
type entryNext struct {
	values map[string]*entryNode
	any    *entryNode
}

// add adds rule id, which wants entries.
func (n *entryNode) add(entries []EntrySpec, id int32) {
	for _, e := range entries {
		n = n.child(e)
	}
	n.rules = append(n.rules, id)
}

func (n *entryNode) child(e EntrySpec) *entryNode {
	if n.next == nil {
		n.next = make(map[string]*entryNext)
	}
	next := n.next[e.Key]
	if next == nil {
		next = &entryNext{values: make(map[string]*entryNode)}
		n.next[e.Key] = next
	}
	child := next.any
	if !e.Any {
		child = next.values[e.Value]
	}
	if child != nil {
		return child
	}
	child = &entryNode{}
	if e.Any {
		next.any = child
	} else {
		next.values[e.Value] = child
	}
	return child
}

// find appends the rules that want just the entries of d.
func (n *entryNode) find(d descriptors.Descriptor, found []int32) []int32 {
	if len(d) == 0 {
		return append(found, n.rules...)
	}
	next := n.next[d[0].Key]
	if next == nil {
		return found
	}
	if next.any != nil {
		found = next.any.find(d[1:], found)
	}
	if child := next.values[d[0].Value]; child != nil {
		found = child.find(d[1:], found)
	}
	return found
}

// ForDescriptor returns the descriptor rules that apply to d, and their
// buckets, at a cost of 1 each. A rule wants the whole of d, in its order.
// Addresses in d are one caller where the policy's trust says so. An empty
// value is a value. Of a tree at most one rule applies, the closest; addresses
// are text there. It keeps nothing of d but the texts.
func (p *Policy) ForDescriptor(d descriptors.Descriptor) []Applied {
	switch {
	case len(d) == 0:
		return nil
	case p.tree != nil:
		return p.tree.forDescriptor(p, d)
	}
	d = p.withCallers(d)
	var space [16]int32
	found := p.entries.find(d, space[:0])
	slices.Sort(found)
	var applied []Applied
	for n, id := range found {
		rule := &p.rules[id]
		if applied == nil {
			applied = make([]Applied, 0, len(found)-n)
		}
		charge := rule.chargeEntries(p, d)
		applied = append(applied, Applied{Rule: rule.Rule, Charge: charge, Unlimited: charge.Limits == nil})
		if rule.stop {
			break
		}
	}
	return applied
}

func (r *rule) chargeEntries(p *Policy, d descriptors.Descriptor) bucket.Charge {
	var space [8]descriptors.Value
	values := space[:0]
	for _, i := range r.order {
		values = append(values, descriptors.Value{Kind: d[i].Key, Text: d[i].Value})
	}
	charge := r.chargeFor(p, values)
	charge.Limits = r.limitsForEntries(d)
	return charge
}

// keyOrder returns the order of entries in a key: those of any value first,
// since the first decides where a cluster keeps the bucket, and one place for
// all of a rule's buckets would be crowded.
func keyOrder(entries []EntrySpec) []int {
	var open, fixed []int
	for i, e := range entries {
		if e.Any {
			open = append(open, i)
		} else {
			fixed = append(fixed, i)
		}
	}
	return append(open, fixed...)
}

// withCallers returns d with its addresses masked as trust says. It leaves the
// caller's d as it was.
func (p *Policy) withCallers(d descriptors.Descriptor) descriptors.Descriptor {
	cloned := false
	for i, e := range d {
		value := p.callerOf(e.Key, e.Value)
		if value == e.Value {
			continue
		}
		if !cloned {
			d, cloned = slices.Clone(d), true
		}
		d[i].Value = value
	}
	return d
}

// holdsAddress says that the values of entries with key are addresses.
func holdsAddress(key string) bool {
	return key == "remote_address" || key == "masked_remote_address"
}

// isAddress says that an entry with key, which holds addresses, can have value.
func isAddress(key, value string) bool {
	if key == "remote_address" && strings.Contains(value, "/") {
		return false
	}
	return parseNetwork(value).IsValid()
}

// callerOf returns the one text for all addresses that are one caller, if key
// is of an entry that holds an address, else value as it is. Of a masked one,
// the shorter of both masks holds.
func (p *Policy) callerOf(key, value string) string {
	if !holdsAddress(key) {
		return value
	}
	network := parseNetwork(value)
	if !network.IsValid() {
		return value
	}
	if network.Bits() < p.Edge.Mask(network.Addr()).Bits() {
		return network.Masked().String()
	}
	return p.Edge.Caller(network.Addr())
}

// parseNetwork reads an address or a network, unmapped and without a zone. It
// returns the zero Prefix for what is neither.
func parseNetwork(s string) netip.Prefix {
	if addr, err := netip.ParseAddr(s); err == nil {
		addr = addr.Unmap().WithZone("")
		return netip.PrefixFrom(addr, addr.BitLen())
	}
	network, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}
	}
	if a := network.Addr(); a.Is4In6() && network.Bits() >= 96 {
		return netip.PrefixFrom(a.Unmap(), network.Bits()-96)
	}
	return network
}
