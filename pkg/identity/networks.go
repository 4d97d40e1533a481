package identity

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// Networks is a set of networks, made to be asked often. The zero value is
// empty. It never changes and is safe for concurrent use.
type Networks struct {
	list []netip.Prefix // disjoint, in the order of their addresses
}

// NewNetworks makes a set of prefixes. Bits behind a prefix's length are
// ignored, and an IPv4 network written as IPv6 is that IPv4 network. The error
// is of type SpecErrors; its fields are [0], [1] and so on.
func NewNetworks(prefixes []netip.Prefix) (Networks, error) {
	n, faults := newNetworks("", prefixes)
	return n, faults.or()
}

// newNetworks is NewNetworks with a name for the field that holds prefixes.
func newNetworks(field string, prefixes []netip.Prefix) (Networks, SpecErrors) {
	var (
		list   []netip.Prefix
		faults SpecErrors
	)
	for i, p := range prefixes {
		q := unmapPrefix(p)
		if !q.IsValid() {
			faults = append(faults, SpecError{fmt.Sprintf("%s[%d]", field, i), p.String(), "a network such as 10.0.0.0/8"})
			continue
		}
		list = append(list, q.Masked())
	}
	return Networks{list: disjoint(list)}, faults
}

// unmapPrefix returns p, as IPv4 if it lies within ::ffff:0:0/96. The zero
// Prefix is one that cannot be used.
func unmapPrefix(p netip.Prefix) netip.Prefix {
	if !p.Addr().Is4In6() {
		return p
	}
	return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
}

// disjoint sorts list and drops what lies within another of its networks.
func disjoint(list []netip.Prefix) []netip.Prefix {
	slices.SortFunc(list, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	kept := list[:0]
	for _, p := range list {
		if len(kept) == 0 || !kept[len(kept)-1].Overlaps(p) {
			kept = append(kept, p)
		}
	}
	return kept
}

// Contains reports whether a, unmapped and without its zone, is in one of the
// networks. The zero Addr is in none.
func (n Networks) Contains(a netip.Addr) bool {
	a = plain(a)
	i, found := slices.BinarySearchFunc(n.list, a, func(p netip.Prefix, a netip.Addr) int {
		return p.Addr().Compare(a)
	})
	return found || i > 0 && n.list[i-1].Contains(a)
}

// Len returns the number of networks, those within others not counted.
func (n Networks) Len() int { return len(n.list) }

// plain returns a unmapped and without its zone.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }
