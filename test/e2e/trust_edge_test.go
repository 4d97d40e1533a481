package e2e_test

import (
	"net/http"
	"slices"
)

// The peers of the setups. Behind a proxy, balancer is the proxy that the
// policies trust, and appends to X-Forwarded-For who connected to it.
const (
	balancer = "127.0.0.5"
	other    = "127.0.0.6"
	forger   = "127.0.0.9"
)

// Headers that clients forge, and Envoy's own for its idea of the client.
const (
	forwardedFor = "X-Forwarded-For"
	realIP       = "X-Real-IP"
	external     = "X-Envoy-External-Address"
)

const (
	local     = "use_remote_address: false"
	remote    = "use_remote_address: true"
	behindOne = "proxies: [127.0.0.5, 10.0.0.0/8]"
	chainOf3  = "1.1.1.1, 2.2.2.2, 10.0.0.3"
)

func trustSetups() []trustSetup {
	return slices.Concat(edgeSetups, behindSetups, hopSetups, headerSetups, detectionSetups, announcedSetups, addressSetups, pipeSetups)
}

func by(from string, header ...string) caller { return caller{from, header} }

func xff(from, value string) caller { return by(from, forwardedFor, value) }

// seen is the fact that a check has an X-Forwarded-For and an
// X-Envoy-External-Address, and RLS an IPv4 address.
func seen(c caller, chain, ext, address string) fact {
	return fact{caller: c, headers: map[string]string{"x-forwarded-for": chain, "x-envoy-external-address": ext}, rls: v4(address)}
}

// v4 is what the descriptors remote_address and masked_remote_address say.
func v4(address string) string { return address + " " + address + "/32" }

// alone are callers who connect themselves: one who forges, first of all the
// addresses of the others, and two who do not.
var alone = [][]caller{
	{
		xff(forger, balancer), by(forger), xff(forger, other), xff(forger, "1.1.1.1"), xff(forger, chainOf3),
		by(forger, forwardedFor, "1.1.1.1", forwardedFor, balancer), xff(forger, "1.1.1.1, unknown"), xff(forger, "127.0.0.5:80"),
		xff(forger, "[::1]:80"), xff(forger, ""), xff(forger, ",,,"), xff(forger, "127.0.0.5, 127.0.0.5"),
		by(forger, external, balancer), by(forger, external, other, forwardedFor, other), by(forger, realIP, balancer),
		by(forger, "Forwarded", "for=127.0.0.5"), by(forger, "X-Client-IP", balancer), by(forger, "X-Envoy-Internal", "true"),
		by(forger, "X-Envoy-Peer-Metadata", "x", "X-Forwarded-Client-Cert", "By=x", "X-Forwarded-Host", "h"),
	},
	{by(balancer)},
	{by(other)},
}

// Envoy is the edge: nobody's word is taken.
var edgeSetups = []trustSetup{
	{
		name: "use_remote_address false, the edge", hcm: local,
		facts: []fact{
			seen(by(balancer), "", "", balancer),
			seen(xff(balancer, "1.1.1.1"), "1.1.1.1", "", "1.1.1.1"),
			seen(xff(balancer, chainOf3), chainOf3, "", "10.0.0.3"),
			seen(by(balancer, forwardedFor, "1.1.1.1", forwardedFor, "2.2.2.2"), "1.1.1.1,2.2.2.2", "", "2.2.2.2"),
			seen(xff(balancer, "1.1.1.1, unknown"), "1.1.1.1, unknown", "", balancer),
			seen(xff(balancer, "1.1.1.1:80"), "1.1.1.1:80", "", balancer),
			seen(xff(balancer, "[2001:db8::1]:80"), "[2001:db8::1]:80", "", balancer),
			seen(by(balancer, external, "6.6.6.6"), "", "6.6.6.6", balancer),
			{caller: by(balancer, realIP, "6.6.6.6", "Forwarded", "for=6.6.6.6"), headers: map[string]string{"x-real-ip": "6.6.6.6", "forwarded": "for=6.6.6.6"}},
		},
		callers: alone,
		// Descriptors are Envoy's own: a client has as many addresses there as
		// it writes. Nothing that is in them tells.
		rls: []rlsCase{
			{xff(forger, "1.1.1.1"), true},
			{xff(forger, "1.1.1.1"), false},
			{xff(forger, "1.1.1.2"), true},
			{xff(forger, balancer), true},
			{by(balancer), false}, // its tokens were taken
		},
	},
	{
		name: "use_remote_address true, the edge", hcm: remote,
		facts: []fact{
			seen(by(balancer), balancer, balancer, balancer),
			seen(xff(balancer, "1.1.1.1"), "1.1.1.1,127.0.0.5", balancer, balancer),
			seen(xff(balancer, chainOf3), chainOf3+",127.0.0.5", balancer, balancer),
			seen(by(balancer, forwardedFor, "1.1.1.1", forwardedFor, "2.2.2.2"), "1.1.1.1,2.2.2.2,127.0.0.5", balancer, balancer),
			seen(xff(balancer, "unknown"), "unknown,127.0.0.5", balancer, balancer),
			seen(by(balancer, external, "6.6.6.6"), balancer, balancer, balancer),
			{caller: by(forger, "Connection", forwardedFor, forwardedFor, "1.1.1.1"), status: http.StatusBadRequest},
			{caller: by(balancer, realIP, "6.6.6.6", "Forwarded", "for=6.6.6.6"), headers: map[string]string{"x-real-ip": "6.6.6.6", "forwarded": "for=6.6.6.6"}},
		},
		callers: alone,
		rls: []rlsCase{
			{xff(forger, balancer), true},
			{xff(forger, "1.1.1.1"), false},
			{by(forger, external, "6.6.6.6"), false},
			{by(balancer), true},
			{by(other), true},
		},
	},
	{
		// A peer that Envoy takes for internal keeps its own word.
		name: "internal addresses", trust: "proxies: [127.0.0.5], header: x-envoy-external-address",
		hcm: remote + `, internal_address_config: {cidr_ranges: [{address_prefix: 127.0.0.0, prefix_len: 8}]}`,
		facts: []fact{
			seen(by(balancer, external, "6.6.6.6"), balancer, "6.6.6.6", balancer),
			seen(by(forger, external, "6.6.6.6", forwardedFor, "1.1.1.1"), "1.1.1.1,127.0.0.9", forger, forger),
		},
		callers: [][]caller{
			{by(forger, external, "6.6.6.6"), by(forger, external, "6.6.6.7"), by(forger, external, other), by(forger)},
			{by(balancer, external, "6.6.6.6")},
			{by(balancer, external, "6.6.6.7")},
			{by(other)},
		},
	},
	{
		// For such a peer Envoy appends an address of its own machine.
		name: "the peer 127.0.0.1", hcm: remote,
		facts: []fact{{
			caller: by("127.0.0.1"), rls: v4("127.0.0.1"),
			headers: map[string]string{"x-forwarded-for": anything, "x-envoy-external-address": "127.0.0.1"},
		}},
		callers: [][]caller{{xff("127.0.0.1", other), by("127.0.0.1"), xff("127.0.0.1", "1.1.1.1")}, {by(other)}},
	},
}

// proxied are callers behind the balancer: one forges what stands left of its
// own address, and one connects past the balancer.
var proxied = [][]caller{
	{
		xff(balancer, "1.1.1.1, 2.2.2.9"), xff(balancer, "2.2.2.9"), xff(balancer, "1.1.1.2, 10.0.0.3, 2.2.2.9, 10.0.0.3"),
		xff(balancer, "unknown, 2.2.2.9:4711"), xff(balancer, "::ffff:2.2.2.9"), xff(balancer, "2.2.2.9, ::ffff:10.0.0.3"), xff(balancer, "[::ffff:2.2.2.9]:1"),
		by(balancer, forwardedFor, "1.1.1.1", forwardedFor, "2.2.2.9"), xff(balancer, "127.0.0.5,2.2.2.9"),
		by(balancer, forwardedFor, "2.2.2.9", external, "1.1.1.1", realIP, "1.1.1.1", "Forwarded", "for=1.1.1.1"),
	},
	{xff(forger, "1.1.1.1"), xff(forger, "1.1.1.2, 10.0.0.3"), xff(forger, "1.1.1.1, 127.0.0.5"), by(forger), by(forger, external, "1.1.1.1")},
	{xff(balancer, "1.1.1.1")},
	{xff(balancer, "1.1.1.2, 10.0.0.3")},
	{xff(balancer, "[2001:db8::1]:4711"), xff(balancer, "2001:db8::2"), xff(balancer, "2001:db8::1%eth0")}, // of one /64
	{xff(balancer, "2001:db8:0:1::1")},
	{xff(balancer, "10.0.0.1, 10.0.0.2, 10.0.0.3")},
	{xff(balancer, "1.1.1.1, unknown"), by(balancer), xff(balancer, "1.1.1.1 1.1.1.2"), xff(balancer, "1.1.1.1,"), xff(balancer, "01.1.1.1")},
}

// Envoy is behind proxies whose addresses the policy knows.
var behindSetups = []trustSetup{
	{name: "use_remote_address false, behind proxies", hcm: local, trust: behindOne, callers: proxied},
	{name: "use_remote_address true, behind proxies", hcm: remote, trust: behindOne, callers: proxied},
	{
		name: "skip_xff_append, behind proxies", hcm: remote + ", skip_xff_append: true", trust: behindOne,
		facts:   []fact{seen(xff(balancer, "1.1.1.1"), "1.1.1.1", balancer, balancer), seen(by(balancer), "", balancer, balancer)},
		callers: proxied,
	},
	{name: "one hop, behind proxies", hcm: remote + ", xff_num_trusted_hops: 1", trust: behindOne, callers: proxied},
	{
		name: "IPv4 in IPv6", hcm: local, trust: behindOne,
		facts: []fact{{
			caller:  xff(balancer, "::ffff:9.9.9.9"),
			headers: map[string]string{"x-forwarded-for": "::ffff:9.9.9.9"}, rls: "::ffff:9.9.9.9 ::/64",
		}},
		callers: [][]caller{{xff(balancer, "::ffff:9.9.9.9"), xff(balancer, "9.9.9.9"), xff(balancer, "::FFFF:0909:0909")}, {xff(balancer, "::ffff:9.9.9.8")}},
		rls: []rlsCase{
			{xff(balancer, "::ffff:9.9.9.9"), true},
			{xff(balancer, "9.9.9.9"), false},
			{xff(balancer, "9.9.9.8"), true},
			{xff(balancer, "::ffff:9.9.9.8"), false},
			{xff(balancer, "2001:db8::1"), true},
			{xff(balancer, "2001:db8::2"), false},
			{xff(balancer, "2001:db8:0:1::1"), true},
		},
	},
}
