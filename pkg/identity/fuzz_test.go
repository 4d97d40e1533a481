package identity_test

import (
	"fmt"
	"math/big"
	"net/netip"
	"strings"
	"testing"

	"github.com/sluice-mesh/sluice/pkg/identity"
)

var walkedHeaders = []string{"x-forwarded-for", "x-real-ip", "forwarded", "x-envoy-external-address"}

var fuzzHeaders = []string{
	"", ",", "6.6.6.6, 203.0.113.7, 10.0.0.3", "[::ffff:10.0.0.3%eth0]:80,1.2.3.4:5", "unknown, 10.0.0.4",
	`for=6.6.6.6;x=", for="[2001:db8::1]:_a";by="a\"b,c", for=10.0.0.3`, `for="1.1.1.1`, strings.Repeat("10.0.0.3,", 50),
}

// No header makes Identify panic, and what it finds is well formed. Who is not
// trusted is the client, whatever he writes.
func FuzzIdentify(f *testing.F) {
	for i, header := range fuzzHeaders {
		f.Add(header, []byte{10, 0, 0, 5}, byte(i), i)
		f.Add(header, []byte{203, 0, 113, 9}, byte(i), i)
		f.Add(header, netip.MustParseAddr("::ffff:10.0.0.5").AsSlice(), byte(i), i)
	}
	f.Fuzz(func(t *testing.T, header string, peer []byte, which byte, hops int) {
		name := walkedHeaders[int(which)%len(walkedHeaders)]
		source, _ := netip.AddrFromSlice(peer)
		a := &identity.Attributes{Source: source, Headers: map[string]string{name: header}, Stamps: map[string]string{"s": header}}
		for _, spec := range []identity.EdgeSpec{
			{},
			{Proxies: behind.Proxies, Header: name},
			{Hops: max(hops, 1), Header: name},
			{Stamp: "s"},
		} {
			checkFound(t, spec, a, mustEdge(t, spec).Identify(a))
			checkTrace(t, mustEdge(t, spec), a)
		}
		if got := (identity.Edge{}).Identify(a); text(got.Client) != text(source.Unmap()) {
			t.Errorf("Identify(%+v), nobody trusted = %v, want the peer", a, got)
		}
	})
}

func checkFound(t *testing.T, spec identity.EdgeSpec, a *identity.Attributes, got identity.Identity) {
	t.Helper()
	if got.Client.Is4In6() || got.Client.Zone() != "" || got.Client.IsValid() == (got.Evidence == identity.Missing) {
		t.Errorf("Identify(%+v) under %+v = %+v, want an unmapped address without a zone, or evidence of none", a, spec, got)
	}
	trusted := inAny(spec.Proxies, a.Source)
	if got.Trusted != trusted {
		t.Errorf("Identify(%+v) under %+v = %+v, want trusted %v", a, spec, got, trusted)
	}
	if len(spec.Proxies) > 0 && !trusted && got.Client != a.Source.Unmap() {
		t.Errorf("Identify(%+v) under %+v = %+v, want the peer, who is not trusted", a, spec, got)
	}
}

func checkTrace(t *testing.T, e identity.Edge, a *identity.Attributes) {
	t.Helper()
	got, want := e.Trace(a), e.Identify(a)
	if got.Identity != want {
		t.Errorf("Trace(%+v) = %+v, want what Identify says, %+v", a, got, want)
	}
	if got.Client >= 0 && got.Hops[got.Client].Addr != want.Client {
		t.Errorf("Trace(%+v) has the client %v, want %v", a, got.Hops[got.Client], want.Client)
	}
}

func inAny(networks []netip.Prefix, a netip.Addr) bool {
	for _, p := range networks {
		if p.Contains(a.Unmap()) {
			return true
		}
	}
	return false
}

// A client who is found stays found, whatever he writes in front of what the
// trusted edge appended: with proxies, once he is no proxy himself; with hops,
// once there are entries enough.
func FuzzForgedFront(f *testing.F) {
	for i, header := range fuzzHeaders {
		for _, front := range fuzzHeaders {
			f.Add(front, header, byte(i))
		}
	}
	f.Fuzz(func(t *testing.T, front, header string, which byte) {
		name := walkedHeaders[int(which)%len(walkedHeaders)]
		honest := from("10.0.0.5", map[string]string{name: header})
		forged := from("10.0.0.5", map[string]string{name: front + "," + header})
		edge := mustEdge(t, identity.EdgeSpec{Proxies: behind.Proxies, Header: name})
		want, got := edge.Identify(honest), edge.Identify(forged)
		if !inAny(behind.Proxies, want.Client) && got != want {
			t.Errorf("Identify(%q) = %+v, in front of it %q makes it %+v", header, want, front, got)
		}
		edge = mustEdge(t, identity.EdgeSpec{Hops: 2, Header: name})
		want, got = edge.Identify(honest), edge.Identify(forged)
		if want.Evidence == identity.FromChain && got != want {
			t.Errorf("Identify(%q) by hops = %+v, in front of it %q makes it %+v", header, want, front, got)
		}
	})
}

// A trusted proxy that appends its own peer names the client, whatever that
// client sent, in whichever of the ways that proxies write addresses.
func FuzzAppendedClient(f *testing.F) {
	for _, front := range fuzzHeaders {
		f.Add(front, []byte{203, 0, 113, 7})
		f.Add(front, netip.MustParseAddr("2001:db8::1").AsSlice())
	}
	f.Fuzz(func(t *testing.T, front string, address []byte) {
		client, ok := netip.AddrFromSlice(address)
		if !ok || inAny(behind.Proxies, client) {
			return
		}
		port := netip.AddrPortFrom(client, 4711).String()
		for name, entries := range map[string][]string{
			"x-forwarded-for": {client.String(), " " + port, port + ", 10.0.0.3"},
			"forwarded":       {fmt.Sprintf(`for="%s"`, port), fmt.Sprintf(` proto=http;For="%s";host="a,b";by=_x, for=10.0.0.3`, port)},
		} {
			edge := mustEdge(t, identity.EdgeSpec{Proxies: behind.Proxies, Header: name})
			for _, entry := range entries {
				header := front + "," + entry
				got := edge.Identify(from("10.0.0.5", map[string]string{name: header}))
				if got.Client != client.Unmap() {
					t.Errorf("Identify(%s: %q) = %+v, want %v", name, header, got, client.Unmap())
				}
			}
		}
	})
}

// ParseAddr takes what net/netip takes, with a port or without, and no more
// than that and brackets.
func FuzzParseAddr(f *testing.F) {
	for _, header := range fuzzHeaders {
		f.Add(header)
	}
	f.Add("1.2.3.4:000080")
	f.Fuzz(func(t *testing.T, s string) {
		if strings.Contains(s, "%") {
			return
		}
		got, ok := identity.ParseAddr(s)
		s = strings.Trim(s, " \t")
		want, err := netip.ParseAddr(s)
		if err != nil && strings.HasSuffix(s, "]") {
			s += ":0"
		}
		if withPort, errPort := netip.ParseAddrPort(s); err != nil {
			want, err = withPort.Addr(), errPort
		}
		if ok != (err == nil) || got != want.Unmap() {
			t.Errorf("ParseAddr(%q) = %v, %v, want %v, %v", s, got, ok, want.Unmap(), err)
		}
	})
}

// Two addresses have one Caller if and only if they begin with the same bits.
func FuzzCaller(f *testing.F) {
	f.Add([]byte{203, 0, 113, 7}, []byte{203, 0, 113, 8}, byte(24), byte(64))
	f.Add(netip.MustParseAddr("2001:db8::1").AsSlice(), netip.MustParseAddr("2001:db8::2").AsSlice(), byte(32), byte(127))
	f.Add(netip.MustParseAddr("::ffff:1.2.3.4").AsSlice(), []byte{1, 2, 3, 4}, byte(32), byte(64))
	f.Fuzz(func(t *testing.T, one, other []byte, bits4, bits6 byte) {
		a, ok1 := netip.AddrFromSlice(one)
		b, ok2 := netip.AddrFromSlice(other)
		if !ok1 || !ok2 {
			return
		}
		spec := identity.EdgeSpec{IPv4Prefix: 1 + int(bits4)%32, IPv6Prefix: 1 + int(bits6)%128}
		edge := mustEdge(t, spec)
		same := front(a, spec) == front(b, spec)
		if got := edge.Caller(a) == edge.Caller(b); got != same {
			t.Errorf("Caller(%v) = %s, Caller(%v) = %s, want one: %v", a, edge.Caller(a), b, edge.Caller(b), same)
		}
		if (edge.Mask(a) == edge.Mask(b)) != same {
			t.Errorf("Mask(%v) = %v, Mask(%v) = %v, want one: %v", a, edge.Mask(a), b, edge.Mask(b), same)
		}
	})
}

// front is the family of a and its leading bits.
func front(a netip.Addr, spec identity.EdgeSpec) string {
	a = a.Unmap()
	bits := spec.IPv6Prefix
	if a.Is4() {
		bits = spec.IPv4Prefix
	}
	n := new(big.Int).SetBytes(a.AsSlice())
	return fmt.Sprint(a.BitLen(), n.Rsh(n, uint(a.BitLen()-bits)))
}

// No header, cookie or target makes Value panic, and what is there twice is
// missing, however often it is there.
func FuzzValue(f *testing.F) {
	f.Add("sid=abc; a=1", "sid")
	f.Add("/a?key=a%2Bb&x;y=%zz#f", "key")
	f.Add(`bearer abc, "`, "a")
	f.Fuzz(func(t *testing.T, raw, name string) {
		twice := map[string]string{"header": raw + "," + raw, "cookie": raw + "; " + raw, "query": "/?" + raw + "&" + raw}
		for kind, spec := range map[string]identity.SourceSpec{
			"header": {Header: "x-name"}, "cookie": {Cookie: name}, "query": {Query: name}, "bearer": {Bearer: true},
		} {
			s, err := identity.NewSource(spec)
			if err != nil {
				continue
			}
			s.Value(attributesWith(raw, raw, raw), identity.Identity{Trusted: true})
			if kind == "query" && strings.Contains(raw, "#") {
				continue // the second is not in the query
			}
			a := attributesWith(twice["header"], twice["cookie"], twice["query"])
			if got, ok := s.Value(a, identity.Identity{Trusted: true}); ok {
				t.Errorf("Value(%+v) of %+v = %q, want it missing", a, spec, got)
			}
		}
	})
}

func attributesWith(header, cookie, path string) *identity.Attributes {
	return &identity.Attributes{Path: path, Headers: map[string]string{"x-name": header, "authorization": header, "cookie": cookie}}
}
