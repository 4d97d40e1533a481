package identity

import (
	"fmt"
	"net/netip"
	"strings"
)

// The forwarded headers that an edge may walk.
const (
	forwardedFor    = "x-forwarded-for"
	realIP          = "x-real-ip"
	forwarded       = "forwarded"
	externalAddress = "x-envoy-external-address"
)

// An Edge is a compiled trusted edge: it knows whose word on a client's
// address is taken. The zero value takes nobody's. It never changes and is
// safe for concurrent use.
type Edge struct {
	proxies      Networks
	hops         int
	stamp        string
	header       string // "" means x-forwarded-for
	bits4, bits6 int    // 0 means 32 and 64
}

// NewEdge compiles spec. The error is of type SpecErrors and says all that is
// wrong.
func NewEdge(spec EdgeSpec) (Edge, error) {
	proxies, faults := newNetworks("proxies", spec.Proxies)
	faults = append(faults, spec.check()...)
	if len(faults) > 0 {
		return Edge{}, faults
	}
	return Edge{
		proxies: proxies,
		hops:    spec.Hops,
		stamp:   strings.ToLower(spec.Stamp),
		header:  strings.ToLower(spec.Header),
		bits4:   spec.IPv4Prefix,
		bits6:   spec.IPv6Prefix,
	}, nil
}

func (s EdgeSpec) check() SpecErrors {
	faults := s.checkModes()
	if s.Hops < 0 {
		faults = append(faults, SpecError{"hops", fmt.Sprint(s.Hops), "a number of proxies, at least 1"})
	}
	if s.Stamp != "" && !isToken(s.Stamp) {
		faults = append(faults, SpecError{"stamp", fmt.Sprintf("%q", s.Stamp), "a key of Envoy's initial_metadata such as x-client-ip"})
	}
	switch strings.ToLower(s.Header) {
	case "", forwardedFor, realIP, forwarded, externalAddress:
	default:
		faults = append(faults, SpecError{"header", fmt.Sprintf("%q", s.Header), "x-forwarded-for, x-real-ip, forwarded or x-envoy-external-address"})
	}
	if s.IPv4Prefix < 0 || s.IPv4Prefix > 32 {
		faults = append(faults, SpecError{"ipv4_prefix", fmt.Sprint(s.IPv4Prefix), "1 to 32"})
	}
	if s.IPv6Prefix < 0 || s.IPv6Prefix > 128 {
		faults = append(faults, SpecError{"ipv6_prefix", fmt.Sprint(s.IPv6Prefix), "1 to 128"})
	}
	return faults
}

// checkModes wants at most one way to trust; the fault is at the last one set.
func (s EdgeSpec) checkModes() SpecErrors {
	var set []string
	if len(s.Proxies) > 0 {
		set = append(set, "proxies")
	}
	if s.Hops != 0 {
		set = append(set, "hops")
	}
	if s.Stamp != "" {
		set = append(set, "stamp")
	}
	if len(set) < 2 {
		return nil
	}
	return SpecErrors{{set[len(set)-1], strings.Join(set, " and "), "only one of proxies, hops and stamp"}}
}

// TrustsPeers reports whether any peer's own headers can be believed. Where it
// is false, a Source that NeedsTrust never has a value.
func (e Edge) TrustsPeers() bool { return e.proxies.Len() > 0 }

// Stamp returns the name, in lower case, by which it looks among an Attributes'
// Stamps, "" if it does not.
func (e Edge) Stamp() string { return e.stamp }

// Identify finds the client of a request. Its time is bounded by the length of
// the forwarded header, and it allocates nothing for each of its entries.
func (e Edge) Identify(a *Attributes) Identity { return e.identify(a, nil) }

// identify finds the client and, unless t is nil, notes in it each entry of the
// forwarded header that it reads.
func (e Edge) identify(a *Attributes, t *Trace) Identity {
	peer := a.peer()
	switch {
	case e.stamp != "":
		return found(parseAddr(a.Stamps[e.stamp]), FromStamp)
	case !peer.IsValid() && !a.Pipe:
		return Identity{}
	case e.hops > 0:
		return e.count(e.chain(a), peer, t)
	case !e.proxies.Contains(peer):
		return found(peer, FromPeer)
	default:
		return e.walk(e.chain(a), peer, t)
	}
}

// peer returns the address of the direct peer; the zero Addr if it has none.
func (a *Attributes) peer() netip.Addr {
	if a.Pipe {
		return netip.Addr{}
	}
	return plain(a.Source)
}

// found returns the identity with the address a; the zero Addr is a missing one.
func found(a netip.Addr, from Evidence) Identity {
	if !a.IsValid() {
		return Identity{}
	}
	return Identity{Client: a, Evidence: from}
}

func (e Edge) chain(a *Attributes) chain {
	switch e.header {
	case "":
		return chain{rest: a.Headers[forwardedFor]}
	case forwarded:
		return chain{rest: a.Headers[forwarded], elements: true}
	default:
		return chain{rest: a.Headers[e.header]}
	}
}

// walk goes from peer, which is trusted, to the left past trusted hops. Garbage
// ends the walk at the last good hop.
func (e Edge) walk(c chain, peer netip.Addr, t *Trace) Identity {
	id := Identity{Client: peer, Trusted: true, Evidence: FromPeer}
	for {
		entry, ok := c.last()
		if !ok {
			return id
		}
		hop := c.parse(entry)
		if !hop.IsValid() {
			t.read(&c, entry, Garbage)
			return id
		}
		id.Client, id.Evidence = hop, FromChain
		if !e.proxies.Contains(hop) {
			t.read(&c, entry, Untrusted)
			return id
		}
		t.read(&c, entry, Trusted)
	}
}

// count goes as many places to the left of the chain's end as there are hops.
// The peer, which has no address if it is a pipe, is the chain's end whether or
// not the header has it.
func (e Edge) count(c chain, peer netip.Addr, t *Trace) Identity {
	entry, ok := c.last()
	if ok && peer.IsValid() && c.parse(entry) == peer {
		t.read(&c, entry, Repeated)
		entry, ok = c.last()
	}
	for place := 1; ok && place < e.hops; place++ {
		t.read(&c, entry, Counted)
		entry, ok = c.last()
	}
	if !ok {
		return found(peer, FromPeer)
	}
	client := c.parse(entry)
	if !client.IsValid() {
		t.read(&c, entry, Garbage)
		return found(peer, FromPeer)
	}
	t.read(&c, entry, Counted)
	return found(client, FromChain)
}

// Mask returns the network whose addresses are one caller with a. The zero
// Addr gives the zero Prefix.
func (e Edge) Mask(a netip.Addr) netip.Prefix {
	a = plain(a)
	bits := 64
	switch {
	case a.Is4() && e.bits4 > 0:
		bits = e.bits4
	case a.Is4():
		bits = 32
	case e.bits6 > 0:
		bits = e.bits6
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}

// Caller returns the text that stands for a in a key: its network, or the bare
// address where that is the whole network. Addresses have the same text if and
// only if Mask gives the same for them. The zero Addr gives "".
func (e Edge) Caller(a netip.Addr) string {
	p := e.Mask(a)
	switch {
	case !p.IsValid():
		return ""
	case p.IsSingleIP():
		return p.Addr().String()
	default:
		return p.String()
	}
}
