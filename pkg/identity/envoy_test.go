package identity_test

import (
	"net/netip"
	"testing"

	"github.com/sluice-mesh/sluice/pkg/identity"
)

// What Envoy tells its authorization service in each of its set-ups, seen on
// Envoy 1.40: of an honest client, and of one that forges what it can. Envoy's
// own idea of the client, which it keeps to itself, is forged in several.
var envoySetups = []struct {
	name            string
	edge            identity.EdgeSpec
	peer            string // "" is a Unix socket
	honest, spoofed map[string]string
	want            string // "" is a missing one
	from            identity.Evidence
	wantSpoofed     string // where the forger gains something; "" is want
}{
	// Nobody is trusted: Envoy is the edge, and its peer is the client.
	{
		name: "use_remote_address false, edge", peer: "127.0.0.5",
		spoofed: xff("1.1.1.1"), want: "127.0.0.5", from: identity.FromPeer,
	},
	{
		name: "use_remote_address true, edge", peer: "127.0.0.5",
		honest: xff("127.0.0.5"), spoofed: xff("1.1.1.1,127.0.0.5"), want: "127.0.0.5", from: identity.FromPeer,
	},
	{
		name: "external address passes through, edge", peer: "127.0.0.5",
		spoofed: map[string]string{"x-envoy-external-address": "6.6.6.6"}, want: "127.0.0.5", from: identity.FromPeer,
	},
	{
		name: "external address passes through although it is walked, edge", peer: "127.0.0.5",
		edge:    identity.EdgeSpec{Header: "x-envoy-external-address"},
		spoofed: map[string]string{"x-envoy-external-address": "6.6.6.6"}, want: "127.0.0.5", from: identity.FromPeer,
	},
	{
		name: "proxy protocol, use_remote_address true", peer: "8.8.8.8",
		honest: xff("8.8.8.8"), spoofed: xff("1.1.1.1,8.8.8.8"), want: "8.8.8.8", from: identity.FromPeer,
	},
	{
		name: "proxy protocol, use_remote_address false", peer: "8.8.8.8",
		spoofed: xff("1.1.1.1"), want: "8.8.8.8", from: identity.FromPeer,
	},
	{name: "IPv6 listener, IPv6 client", peer: "::1", honest: xff("::1"), spoofed: xff("1.1.1.1,::1"), want: "::1", from: identity.FromPeer},
	{name: "IPv6 listener, IPv4 client", peer: "127.0.0.5", honest: xff("127.0.0.5"), want: "127.0.0.5", from: identity.FromPeer},
	{name: "Unix socket", peer: "", honest: nil, spoofed: xff("1.1.1.1"), want: "", from: identity.Missing},

	// The peer is a trusted balancer that appends its own peer, and 10/8 are
	// trusted proxies before it.
	{
		name: "use_remote_address false, no header", peer: "127.0.0.5", edge: behind,
		want: "127.0.0.5", from: identity.FromPeer,
	},
	{
		name: "use_remote_address false, one proxy", peer: "127.0.0.5", edge: behind,
		honest: xff("1.1.1.1"), spoofed: xff("6.6.6.6, 1.1.1.1"), want: "1.1.1.1", from: identity.FromChain,
	},
	{
		name: "use_remote_address false, two proxies", peer: "127.0.0.5", edge: behind,
		honest: xff("2.2.2.2, 10.0.0.3"), spoofed: xff("1.1.1.1, 2.2.2.2, 10.0.0.3"), want: "2.2.2.2", from: identity.FromChain,
	},
	{
		name: "two lines", peer: "127.0.0.5", edge: behind,
		honest: xff("2.2.2.2"), spoofed: xff("1.1.1.1,2.2.2.2"), want: "2.2.2.2", from: identity.FromChain,
	},
	{
		name: "unknown", peer: "127.0.0.5", edge: behind,
		honest: xff("unknown"), spoofed: xff("1.1.1.1, unknown"), want: "127.0.0.5", from: identity.FromPeer,
	},
	{
		name: "IPv4 with a port", peer: "127.0.0.5", edge: behind,
		honest: xff("1.1.1.1:4711"), spoofed: xff("6.6.6.6:80, 1.1.1.1:4711"), want: "1.1.1.1", from: identity.FromChain,
	},
	{
		name: "IPv6 with a port", peer: "127.0.0.5", edge: behind,
		honest: xff("[2001:db8::1]:4711"), spoofed: xff("[::6]:80, [2001:db8::1]:4711"), want: "2001:db8::1", from: identity.FromChain,
	},
	{
		name: "external address passes through", peer: "127.0.0.5", edge: behind,
		honest:  xff("1.1.1.1"),
		spoofed: map[string]string{"x-forwarded-for": "1.1.1.1", "x-envoy-external-address": "6.6.6.6"},
		want:    "1.1.1.1", from: identity.FromChain,
	},
	{
		name: "use_remote_address true, no header", peer: "127.0.0.5", edge: behind,
		honest: xff("127.0.0.5"), want: "127.0.0.5", from: identity.FromChain,
	},
	{
		name: "use_remote_address true, one proxy", peer: "127.0.0.5", edge: behind,
		honest: xff("1.1.1.1,127.0.0.5"), spoofed: xff("6.6.6.6, 1.1.1.1,127.0.0.5"), want: "1.1.1.1", from: identity.FromChain,
	},
	{
		name: "skip_xff_append", peer: "127.0.0.5", edge: behind,
		honest: xff("1.1.1.1"), spoofed: xff("6.6.6.6, 1.1.1.1"), want: "1.1.1.1", from: identity.FromChain,
	},
	{
		name: "xff extension with CIDRs, all trusted", peer: "127.0.0.5", edge: behind,
		honest: xff("10.0.0.1, 10.0.0.2, 10.0.0.3"), want: "10.0.0.1", from: identity.FromChain,
	},
	{
		name: "xff extension with CIDRs, right-most unparsable", peer: "127.0.0.5", edge: behind,
		honest: xff("_hidden"), spoofed: xff("1.1.1.1, _hidden"), want: "127.0.0.5", from: identity.FromPeer,
	},
	{
		name: "xff extension with CIDRs, peer is none of them", peer: "203.0.113.9", edge: behind,
		honest: xff("203.0.113.9"), spoofed: xff("1.1.1.1,203.0.113.9"), want: "203.0.113.9", from: identity.FromPeer,
	},
	{
		name: "IPv4 in IPv6", peer: "127.0.0.5", edge: behind,
		honest: xff("::ffff:9.9.9.9"), spoofed: xff("6.6.6.6, ::ffff:9.9.9.9"), want: "9.9.9.9", from: identity.FromChain,
	},
	{
		name: "peer is IPv4 in IPv6", peer: "::ffff:127.0.0.5", edge: behind,
		honest: xff("9.9.9.9"), want: "9.9.9.9", from: identity.FromChain,
	},
	{
		name: "custom header, from anybody", peer: "203.0.113.9",
		edge:    identity.EdgeSpec{Proxies: behind.Proxies, Header: "x-real-ip"},
		spoofed: map[string]string{"x-real-ip": "7.7.7.7"}, want: "203.0.113.9", from: identity.FromPeer,
	},
	{
		name: "custom header, from the balancer", peer: "127.0.0.5",
		edge:    identity.EdgeSpec{Proxies: behind.Proxies, Header: "x-real-ip"},
		honest:  map[string]string{"x-real-ip": "7.7.7.7"},
		spoofed: map[string]string{"x-real-ip": "7.7.7.7", "x-forwarded-for": "6.6.6.6"},
		want:    "7.7.7.7", from: identity.FromChain,
	},
	{name: "Unix socket, proxies", peer: "", edge: behind, honest: xff("1.1.1.1"), want: "", from: identity.Missing},

	// So many proxies stand before Envoy, whoever they are.
	{
		name: "use_remote_address true, one hop", peer: "127.0.0.5", edge: identity.EdgeSpec{Hops: 1},
		honest: xff("1.1.1.1,127.0.0.5"), spoofed: xff("6.6.6.6, 1.1.1.1,127.0.0.5"), want: "1.1.1.1", from: identity.FromChain,
	},
	{
		name: "use_remote_address true, one hop, garbage", peer: "127.0.0.5", edge: identity.EdgeSpec{Hops: 1},
		honest: xff("unknown,127.0.0.5"), spoofed: xff("6.6.6.6, unknown,127.0.0.5"), want: "127.0.0.5", from: identity.FromPeer,
	},
	{
		name: "use_remote_address true, one hop, no header", peer: "127.0.0.5", edge: identity.EdgeSpec{Hops: 1},
		honest: xff("127.0.0.5"), want: "127.0.0.5", from: identity.FromPeer,
		// A client that reaches Envoy past the proxy chooses: hops are not tied to a peer.
		spoofed: xff("6.6.6.6,127.0.0.5"), wantSpoofed: "6.6.6.6",
	},
	{
		name: "use_remote_address true, two hops", peer: "127.0.0.5", edge: identity.EdgeSpec{Hops: 2},
		honest: xff("2.2.2.2, 10.0.0.3,127.0.0.5"), spoofed: xff("1.1.1.1, 2.2.2.2, 10.0.0.3,127.0.0.5"),
		want: "2.2.2.2", from: identity.FromChain,
	},
	{
		name: "use_remote_address true, two hops, too few", peer: "127.0.0.5", edge: identity.EdgeSpec{Hops: 2},
		honest: xff("10.0.0.3,127.0.0.5"), want: "127.0.0.5", from: identity.FromPeer,
	},
	{
		name: "use_remote_address false, one hop", peer: "127.0.0.5", edge: identity.EdgeSpec{Hops: 1},
		honest: xff("10.0.0.3"), spoofed: xff("1.1.1.1, 2.2.2.2, 10.0.0.3"), want: "10.0.0.3", from: identity.FromChain,
	},
	{
		name: "use_remote_address false, two hops", peer: "127.0.0.5", edge: identity.EdgeSpec{Hops: 2},
		honest: xff("2.2.2.2, 10.0.0.3"), spoofed: xff("1.1.1.1, 2.2.2.2, 10.0.0.3"), want: "2.2.2.2", from: identity.FromChain,
	},
	{
		name: "one hop, the entry is the peer in other letters", peer: "2001:db8::5", edge: identity.EdgeSpec{Hops: 1},
		honest: xff("1.1.1.1, 2001:0DB8:0::5"), spoofed: xff("6.6.6.6, 1.1.1.1, 2001:0DB8:0::5"), want: "1.1.1.1", from: identity.FromChain,
	},
	{
		name: "Unix socket, one hop", peer: "", edge: identity.EdgeSpec{Hops: 1},
		honest: xff("1.1.1.1"), spoofed: xff("6.6.6.6, 1.1.1.1"), want: "1.1.1.1", from: identity.FromChain,
	},
	{
		name: "Unix socket, one hop, garbage", peer: "", edge: identity.EdgeSpec{Hops: 1},
		honest: xff("unknown"), spoofed: xff("6.6.6.6, unknown"), want: "", from: identity.Missing,
	},
	{name: "Unix socket, one hop, no header", peer: "", edge: identity.EdgeSpec{Hops: 1}, want: "", from: identity.Missing},
}

var behind = identity.EdgeSpec{Proxies: prefixes("127.0.0.5/32", "10.0.0.0/8")}

func TestIdentifyBehindEnvoy(t *testing.T) {
	t.Parallel()
	for _, test := range envoySetups {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			edge := mustEdge(t, test.edge)
			checkIdentify(t, edge, from(test.peer, test.honest), test.want, test.from)
			if test.spoofed == nil {
				return
			}
			want, evidence := test.want, test.from
			if test.wantSpoofed != "" {
				want, evidence = test.wantSpoofed, identity.FromChain
			}
			checkIdentify(t, edge, from(test.peer, test.spoofed), want, evidence)
		})
	}
}

func checkIdentify(t *testing.T, edge identity.Edge, a *identity.Attributes, want string, from identity.Evidence) {
	t.Helper()
	got := edge.Identify(a)
	if text(got.Client) != want || got.Evidence != from {
		t.Errorf("Identify(peer %v, %v) = %q from the %v, want %q from the %v",
			a.Source, a.Headers, text(got.Client), got.Evidence, want, from)
	}
}

func text(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func xff(value string) map[string]string {
	return map[string]string{"x-forwarded-for": value}
}

// from are the attributes of a request from peer; "" is a Unix socket.
func from(peer string, headers map[string]string) *identity.Attributes {
	if peer == "" {
		return &identity.Attributes{Pipe: true, Headers: headers}
	}
	return &identity.Attributes{Source: netip.MustParseAddr(peer), Headers: headers}
}

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, s := range texts {
		list[i] = netip.MustParsePrefix(s)
	}
	return list
}

func mustEdge(t testing.TB, spec identity.EdgeSpec) identity.Edge {
	t.Helper()
	edge, err := identity.NewEdge(spec)
	if err != nil {
		t.Fatalf("NewEdge(%+v) = %v", spec, err)
	}
	return edge
}
