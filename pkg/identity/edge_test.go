package identity_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/identity"
)

func TestParseAddr(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, want string }{
		{"203.0.113.7", "203.0.113.7"},
		{" \t203.0.113.7\t ", "203.0.113.7"},
		{"203.0.113.7:0", "203.0.113.7"},
		{"203.0.113.7:65535", "203.0.113.7"},
		{"2001:DB8:0:0::1", "2001:db8::1"},
		{"[2001:db8::1]", "2001:db8::1"},
		{"[2001:db8::1]:443", "2001:db8::1"},
		{"::ffff:203.0.113.7", "203.0.113.7"},
		{"::FFFF:cb00:7107", "203.0.113.7"},
		{"[::ffff:203.0.113.7]:443", "203.0.113.7"},
		{"fe80::1%eth0", "fe80::1"},
		{"[fe80::1%25eth0]:443", "fe80::1"},

		{"", ""},
		{" ", ""},
		{"unknown", ""},
		{"_hidden", ""},
		{"-", ""},
		{"localhost", ""},
		{"203.0.113", ""},
		{"203.0.113.256", ""},
		{"203.0.113.07", ""},
		{"010.0.0.1", ""},
		{"0x0a.0.0.1", ""},
		{"0x0a000001", ""},
		{"167772161", ""},
		{"::ffff:203.0.113.07", ""},
		{"1.1.1.1 2.2.2.2", ""},
		{"2001:db8::1 2001:db8::2", ""},
		{"fe80::1%a fe80::2", ""},
		{"1.1.1.1,2.2.2.2", ""},
		{"203.0.113.7:", ""},
		{"203.0.113.7:http", ""},
		{"203.0.113.7:65536", ""},
		{"203.0.113.7:-1", ""},
		{"203.0.113.7:+1", ""},
		{"203.0.113.7%eth0", ""},
		{"fe80::1%", ""},
		{"[203.0.113.7]", ""},
		{"[203.0.113.7]:80", ""},
		{"[2001:db8::1", ""},
		{"2001:db8::1]", ""},
		{"[2001:db8::1]443", ""},
		{"[[2001:db8::1]]", ""},
		{"[]", ""},
		{"203.0.113.0/24", ""},
		{"203.0.113.7\x00", ""},
		{"\n203.0.113.7", ""},
		{"２０３.0.113.7", ""},
	}
	for _, test := range tests {
		got, ok := identity.ParseAddr(test.in)
		if text(got) != test.want || ok != (test.want != "") {
			t.Errorf("ParseAddr(%q) = %q, %v, want %q", test.in, text(got), ok, test.want)
		}
	}
}

func TestIdentifyWalks(t *testing.T) {
	t.Parallel()
	edge := mustEdge(t, behind)
	tests := []struct {
		name, header, want string
		from               identity.Evidence
	}{
		{"B001 forged entry 1", "1.1.1.1, 203.0.113.7", "203.0.113.7", identity.FromChain},
		{"B001 forged entry 2", "1.1.1.2, 203.0.113.7", "203.0.113.7", identity.FromChain},
		{"garbage left of the client", "x,, 1.2.3, 203.0.113.7", "203.0.113.7", identity.FromChain},
		{"garbage right of the client", "203.0.113.7, x", "10.0.0.5", identity.FromPeer},
		{"garbage right of the client, after a good hop", "203.0.113.7, x, 10.0.0.4", "10.0.0.4", identity.FromChain},
		{"empty entry right of the client", "203.0.113.7,", "10.0.0.5", identity.FromPeer},
		{"empty entry between", "203.0.113.7,, 10.0.0.4", "10.0.0.4", identity.FromChain},
		{"empty entry left of all trusted", ", 10.0.0.4", "10.0.0.4", identity.FromChain},
		{"two addresses with a space", "203.0.113.7 10.0.0.4", "10.0.0.5", identity.FromPeer},
		{"all trusted", "10.0.0.3, 10.0.0.4", "10.0.0.3", identity.FromChain},
		{"trusted hop with a port and mapped", "203.0.113.7, [::ffff:10.0.0.3]:80", "203.0.113.7", identity.FromChain},
		{"empty header", "", "10.0.0.5", identity.FromPeer},
		{"spaces", " ", "10.0.0.5", identity.FromPeer},
		{"only commas", ",,,", "10.0.0.5", identity.FromPeer},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			checkIdentify(t, edge, from("10.0.0.5", xff(test.header)), test.want, test.from)
		})
	}
}

func TestIdentifyForwarded(t *testing.T) {
	t.Parallel()
	spec := behind
	spec.Header = "Forwarded"
	edge := mustEdge(t, spec)
	tests := []struct{ name, header, want string }{
		{"plain", "for=192.0.2.60;proto=http;by=203.0.113.43", "192.0.2.60"},
		{"name in any case, not the first", "proto=https;FOR=192.0.2.60", "192.0.2.60"},
		{"quoted IPv6 with a port", `For="[2001:db8:cafe::17]:4711"`, "2001:db8:cafe::17"},
		{"made-up port", `for="192.0.2.43:_gazonk"`, "192.0.2.43"},
		{"the right-most untrusted", `for=6.6.6.6, for=192.0.2.43, for="10.0.0.3"`, "192.0.2.43"},
		{"comma and semicolon in quotes", `for=192.0.2.43;host="a,for=6.6.6.6;for=6.6.6.7"`, "192.0.2.43"},
		{"escaped quote", `for=192.0.2.43;host="a\",b\\"`, "192.0.2.43"},
		{"comma before an escaped quote", `for=192.0.2.43;host="a,b\"c"`, "192.0.2.43"},
		{"name that is no token", "for=1.1.1.1;a b=c", "10.0.0.5"},
		{"quote within a bare value", `for=1.1.1.1;a=b"c`, "10.0.0.5"},
		{"quote left open by the client", `for=6.6.6.6;x=", for=192.0.2.43`, "192.0.2.43"},
		{"quotes left open on both sides", `for=6.6.6.6;x=", for="1.1.1.1`, "10.0.0.5"},
		{"hidden", "for=6.6.6.6, for=_hidden", "10.0.0.5"},
		{"unknown", "for=6.6.6.6, for=unknown", "10.0.0.5"},
		{"no for", "for=6.6.6.6, proto=http", "10.0.0.5"},
		{"for twice", "for=1.1.1.1;for=2.2.2.2", "10.0.0.5"},
		{"bare address", "1.1.1.1", "10.0.0.5"},
		{"text after a quoted string", `for="1.1.1.1"x`, "10.0.0.5"},
		{"open quote", `for="1.1.1.1`, "10.0.0.5"},
		{"empty", "", "10.0.0.5"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a := from("10.0.0.5", map[string]string{"forwarded": test.header, "x-forwarded-for": "6.6.6.6"})
			if got := edge.Identify(a); text(got.Client) != test.want {
				t.Errorf("Identify(forwarded: %s) = %v, want %s", test.header, got.Client, test.want)
			}
		})
	}
}

func TestIdentifyStamp(t *testing.T) {
	t.Parallel()
	edge := mustEdge(t, identity.EdgeSpec{Stamp: "X-Client-IP"})
	tests := []struct {
		name   string
		stamps map[string]string
		want   string
	}{
		{"through a trusted balancer", map[string]string{"x-client-ip": "9.9.9.9"}, "9.9.9.9"},
		{"with a port", map[string]string{"x-client-ip": "9.9.9.9:4711"}, "9.9.9.9"},
		{"mapped, with a port", map[string]string{"x-client-ip": "[::ffff:9.9.9.9]:4711"}, "9.9.9.9"},
		{"absent", nil, ""},
		{"another one", map[string]string{"x-other": "9.9.9.9"}, ""},
		{"empty", map[string]string{"x-client-ip": ""}, ""},
		{"Envoy's word for nothing", map[string]string{"x-client-ip": "-"}, ""},
		{"twice", map[string]string{"x-client-ip": "9.9.9.9,8.8.8.8"}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a := from("127.0.0.5", map[string]string{"x-client-ip": "6.6.6.6", "x-forwarded-for": "6.6.6.6"})
			a.Stamps = test.stamps
			got := edge.Identify(a)
			if text(got.Client) != test.want || got.Trusted || (got.Evidence == identity.FromStamp) != (test.want != "") {
				t.Errorf("Identify(stamps %v) = %+v, want %q, not trusted", test.stamps, got, test.want)
			}
		})
	}
}

func TestIdentifyTrusted(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		spec identity.EdgeSpec
		a    *identity.Attributes
		want bool
	}{
		{"peer in proxies", behind, from("10.0.0.5", nil), true},
		{"peer in proxies, mapped", behind, from("::ffff:10.0.0.5", nil), true},
		{"another peer, who names a proxy", behind, from("203.0.113.7", xff("10.0.0.5")), false},
		{"pipe", behind, from("", nil), false},
		{"pipe that names an address", behind, &identity.Attributes{Pipe: true, Source: netip.MustParseAddr("10.0.0.5")}, false},
		{"no source", behind, &identity.Attributes{}, false},
		{"hops", identity.EdgeSpec{Hops: 1}, from("10.0.0.5", xff("1.1.1.1")), false},
		{"nobody", identity.EdgeSpec{}, from("10.0.0.5", nil), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := mustEdge(t, test.spec).Identify(test.a); got.Trusted != test.want {
				t.Errorf("Identify(%+v).Trusted = %v, want %v", test.a, got.Trusted, test.want)
			}
		})
	}
}

// Without a source there is no place in a chain to count from.
func TestIdentifyWithoutSource(t *testing.T) {
	t.Parallel()
	for _, spec := range []identity.EdgeSpec{{}, behind, {Hops: 1}} {
		a := &identity.Attributes{Headers: xff("6.6.6.6, 7.7.7.7")}
		if got := mustEdge(t, spec).Identify(a); got != (identity.Identity{}) {
			t.Errorf("Identify(no source) under %+v = %+v, want none", spec, got)
		}
	}
}

func TestNewEdgeFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		spec identity.EdgeSpec
		want []string // fields
	}{
		{"hops below 0", identity.EdgeSpec{Hops: -1}, []string{"hops"}},
		{"proxies and hops", identity.EdgeSpec{Proxies: behind.Proxies, Hops: 1}, []string{"hops"}},
		{"hops and stamp", identity.EdgeSpec{Hops: 1, Stamp: "x-client-ip"}, []string{"stamp"}},
		{"stamp", identity.EdgeSpec{Stamp: "x client"}, []string{"stamp"}},
		{"header", identity.EdgeSpec{Header: "true-client-ip"}, []string{"header"}},
		{"prefixes", identity.EdgeSpec{IPv4Prefix: 33, IPv6Prefix: -1}, []string{"ipv4_prefix", "ipv6_prefix"}},
		{
			"networks",
			identity.EdgeSpec{Proxies: []netip.Prefix{
				behind.Proxies[0], {}, netip.MustParsePrefix("::ffff:0:0/95"),
			}},
			[]string{"proxies[1]", "proxies[2]"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := identity.NewEdge(test.spec)
			if got := faultFields(err); !cmp.Equal(got, test.want) {
				t.Errorf("NewEdge(%+v) = %v, want faults at %v", test.spec, err, test.want)
			}
		})
	}
}

// faultFields are the fields that err finds wrong.
func faultFields(err error) (fields []string) {
	var faults identity.SpecErrors
	errors.As(err, &faults)
	for _, f := range faults {
		fields = append(fields, f.Field)
	}
	return fields
}

func TestSpecErrorsError(t *testing.T) {
	t.Parallel()
	_, err := identity.NewEdge(identity.EdgeSpec{Hops: -1, IPv4Prefix: 33})
	want := "hops: found -1, want a number of proxies, at least 1; ipv4_prefix: found 33, want 1 to 32"
	if err == nil || err.Error() != want {
		t.Errorf("NewEdge(hops -1, ipv4_prefix 33) = %v, want %s", err, want)
	}
}

func TestCaller(t *testing.T) {
	t.Parallel()
	wide := identity.EdgeSpec{IPv4Prefix: 24, IPv6Prefix: 56}
	whole := identity.EdgeSpec{IPv6Prefix: 128}
	tests := []struct {
		name string
		spec identity.EdgeSpec
		in   string
		want string
	}{
		{"B005 plain", identity.EdgeSpec{}, "203.0.113.7", "203.0.113.7"},
		{"B005 mapped", identity.EdgeSpec{}, "::ffff:203.0.113.7", "203.0.113.7"},
		{"B005 mapped in hexadecimal", identity.EdgeSpec{}, "::FFFF:cb00:7107", "203.0.113.7"},
		{"B006 first of a /64", identity.EdgeSpec{}, "2001:db8:1:2::1", "2001:db8:1:2::/64"},
		{"B006 second", identity.EdgeSpec{}, "2001:db8:1:2:ffff::9", "2001:db8:1:2::/64"},
		{"B006 third", identity.EdgeSpec{}, "2001:db8:1:2:8000::", "2001:db8:1:2::/64"},
		{"B006 the next /64", identity.EdgeSpec{}, "2001:db8:1:3::1", "2001:db8:1:3::/64"},
		{"B007 /24", wide, "203.0.113.1", "203.0.113.0/24"},
		{"B007 the same /24", wide, "203.0.113.254", "203.0.113.0/24"},
		{"B007 the next /24", wide, "203.0.114.1", "203.0.114.0/24"},
		{"B007 /56", wide, "2001:db8:0:100::1", "2001:db8:0:100::/56"},
		{"B007 the same /56", wide, "2001:db8:0:1ff::1", "2001:db8:0:100::/56"},
		{"B007 the next /56", wide, "2001:db8:0:200::1", "2001:db8:0:200::/56"},
		{"mapped goes by the IPv4 prefix", wide, "::ffff:203.0.113.254", "203.0.113.0/24"},
		{"/128", whole, "2001:db8::1", "2001:db8::1"},
		{"zone", whole, "fe80::1%eth0", "fe80::1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := mustEdge(t, test.spec).Caller(netip.MustParseAddr(test.in)); got != test.want {
				t.Errorf("Caller(%s) = %q, want %q", test.in, got, test.want)
			}
		})
	}
	if got := (identity.Edge{}).Caller(netip.Addr{}); got != "" {
		t.Errorf("Caller(no address) = %q, want none", got)
	}
}

func TestTrustsPeers(t *testing.T) {
	t.Parallel()
	if got := mustEdge(t, behind).TrustsPeers(); !got {
		t.Errorf("TrustsPeers() with proxies = %v, want true", got)
	}
	if got := mustEdge(t, identity.EdgeSpec{Hops: 1}).TrustsPeers(); got {
		t.Errorf("TrustsPeers() with hops = %v, want false", got)
	}
}

// B003: with the balancer trusted, its clients are told apart; without, they
// are all the balancer.
func TestIdentifyB003(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"nobody trusted": 1, "balancer trusted": 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var spec identity.EdgeSpec
			if want > 1 {
				spec.Proxies = prefixes("10.0.0.5/32")
			}
			edge, callers := mustEdge(t, spec), map[string]bool{}
			for n := range 20 {
				id := edge.Identify(from("10.0.0.5", xff(fmt.Sprintf("198.51.100.%d", n+1))))
				callers[edge.Caller(id.Client)] = true
			}
			if len(callers) != want {
				t.Errorf("Identify of 20 clients found %d callers, want %d", len(callers), want)
			}
		})
	}
}

func TestEvidenceString(t *testing.T) {
	t.Parallel()
	for e, want := range map[identity.Evidence]string{
		identity.Missing: "missing", identity.FromPeer: "peer", identity.FromChain: "chain", identity.FromStamp: "stamp", 9: "evidence(9)",
	} {
		if got := e.String(); got != want {
			t.Errorf("Evidence(%d).String() = %q, want %q", uint8(e), got, want)
		}
	}
}
