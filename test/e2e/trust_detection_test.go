package e2e_test

import "net/http"

const stampTrust = "stamp: x-client-ip"

// detects is an HTTP connection manager with an extension that finds the
// client's address.
func detects(name, fields string) string {
	return `use_remote_address: false, original_ip_detection_extensions: [{name: x, typed_config: {` +
		`"@type": type.googleapis.com/envoy.extensions.http.original_ip_detection.` + name + `, ` + fields + `}}]`
}

var (
	byNetworks = detects("xff.v3.XffConfig", "xff_trusted_cidrs: {cidrs: ["+
		"{address_prefix: 127.0.0.5, prefix_len: 32}, {address_prefix: 10.0.0.0, prefix_len: 8}]}")
	byNoHop  = detects("xff.v3.XffConfig", "xff_num_trusted_hops: 0")
	byOneHop = detects("xff.v3.XffConfig", "xff_num_trusted_hops: 1")
	byRealIP = detects("custom_header.v3.CustomHeaderConfig", "header_name: x-real-ip, allow_extension_to_set_address_as_trusted: true")
	byNoName = detects("custom_header.v3.CustomHeaderConfig", "header_name: x-real-ip, reject_with_status: {code: Forbidden}")
)

// stamped are the callers of proxied, as far as Envoy and a policy read
// addresses alike: Envoy takes none with a port or a zone.
var stamped = [][]caller{
	{
		xff(balancer, "1.1.1.1, 2.2.2.9"), xff(balancer, "2.2.2.9"), xff(balancer, "1.1.1.2, 10.0.0.3, 2.2.2.9, 10.0.0.3"),
		xff(balancer, "::ffff:2.2.2.9"), by(balancer, forwardedFor, "2.2.2.9", "X-Client-IP", "1.1.1.1", external, "1.1.1.1"),
	},
	{xff(forger, "1.1.1.1"), xff(forger, "1.1.1.1, 127.0.0.5"), by(forger), by(forger, "X-Client-IP", "1.1.1.1"), xff(forger, other)},
	{xff(balancer, "1.1.1.1")},
	{xff(balancer, "1.1.1.2, 10.0.0.3")},
	{xff(balancer, "2001:db8::1"), xff(balancer, "2001:db8::2")},
	{xff(balancer, "2001:db8:0:1::1")},
	{by(balancer), xff(balancer, "1.1.1.1, unknown")},
	{by(other)},
}

// What the extensions find is in no check, unless Envoy stamps it.
var detectionSetups = []trustSetup{
	{
		name: "xff extension by networks, stamp", hcm: byNetworks, trust: stampTrust,
		facts: []fact{
			stampSeen(xff(balancer, chainOf3), chainOf3, "2.2.2.2"),
			stampSeen(xff(balancer, "10.0.0.1, 10.0.0.2"), "10.0.0.1, 10.0.0.2", "10.0.0.1"),
			stampSeen(xff(balancer, "1.1.1.1, unknown"), "1.1.1.1, unknown", balancer),
			stampSeen(xff(forger, "1.1.1.1"), "1.1.1.1,127.0.0.9", forger),
		},
		callers: stamped,
		rls: []rlsCase{
			{xff(forger, "1.1.1.1"), true},
			{xff(forger, "1.1.1.2"), false},
			{xff(balancer, "1.1.1.1"), true},
			{xff(balancer, "1.1.1.2, 10.0.0.3"), true},
			{xff(balancer, "6.6.6.6, 1.1.1.2"), false},
		},
	},
	{name: "xff extension by networks, proxies", hcm: byNetworks, trust: behindOne, callers: proxied},
	{
		name: "xff extension, no hop", hcm: byNoHop, trust: "hops: 1",
		facts: []fact{
			stampSeen(by(balancer), "", balancer),
			stampSeen(xff(balancer, "1.1.1.1"), "1.1.1.1", "1.1.1.1"),
			stampSeen(xff(balancer, chainOf3), chainOf3, "10.0.0.3"),
			stampSeen(xff(balancer, "1.1.1.1, unknown"), "1.1.1.1, unknown", balancer),
		},
		callers: oneHop,
	},
	{
		name: "xff extension, one hop", hcm: byOneHop, trust: "hops: 2",
		facts: []fact{stampSeen(xff(balancer, chainOf3), chainOf3, "2.2.2.2")}, callers: twoHops,
	},
	{
		// Envoy believes that header from anybody, in a stamp too: a policy
		// names the proxies.
		name: "custom header extension", hcm: byRealIP, trust: behindOne + ", header: x-real-ip",
		facts: []fact{
			stampSeen(by(balancer, realIP, "7.7.7.7"), "", "7.7.7.7"),
			stampSeen(by(forger, realIP, "7.7.7.7"), "", "7.7.7.7"),
			stampSeen(by(balancer), "", balancer),
		},
		callers: [][]caller{
			{by(forger, realIP, "7.7.7.7"), by(forger, realIP, "7.7.7.8"), by(forger), by(forger, realIP, other)},
			{by(balancer, realIP, "7.7.7.7")},
			{by(balancer, realIP, "7.7.7.8")},
			{by(other)},
		},
	},
	{
		name: "custom header extension that rejects", hcm: byNoName, trust: behindOne + ", header: x-real-ip",
		facts: []fact{
			{caller: by(balancer), status: http.StatusForbidden},
			{caller: by(forger, realIP, "unknown"), status: http.StatusForbidden},
			stampSeen(by(balancer, realIP, "7.7.7.7"), "", "7.7.7.7"),
		},
		callers: [][]caller{
			{by(forger, realIP, "7.7.7.7"), by(forger, realIP, "7.7.7.8")},
			{by(balancer, realIP, "7.7.7.7")},
			{by(balancer, realIP, "7.7.7.8")},
		},
	},
	{
		name: "hops of Envoy, stamp", hcm: remote + ", xff_num_trusted_hops: 1", trust: stampTrust,
		facts: []fact{{caller: xff(balancer, chainOf3), rls: v4("10.0.0.3"), stamp: "10.0.0.3"}},
		callers: [][]caller{
			{xff(balancer, "1.1.1.1, 2.2.2.9"), xff(balancer, "2.2.2.9"), by(balancer, forwardedFor, "2.2.2.9", "X-Client-IP", "1.1.1.1")},
			{xff(balancer, "1.1.1.1")},
			{xff(balancer, "1.1.1.2")},
			{by(balancer), xff(balancer, "unknown")},
		},
	},
	{name: "the edge, stamp", hcm: remote, trust: stampTrust, callers: alone},
}

// stampSeen is what a check says where an extension finds the address, or
// nothing does.
func stampSeen(c caller, chain, address string) fact {
	f := seen(c, chain, "", address)
	f.stamp = address
	return f
}

const announces = `listener_filters: [{name: proxy, typed_config: {"@type": ` +
	`type.googleapis.com/envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol}}]`

// announcedOnes are callers over a proxy that announces who connected to it:
// what they write into headers changes nothing.
var announcedOnes = [][]caller{
	{xff("8.8.8.9", "8.8.8.8"), by("8.8.8.9"), xff("8.8.8.9", "8.8.8.7"), by("8.8.8.9", external, "8.8.8.8", realIP, "8.8.8.8")},
	{by("8.8.8.8")},
	{by("8.8.8.7")},
}

var announcedSetups = []trustSetup{
	{
		name: "PROXY protocol, use_remote_address true", hcm: remote, listener: announces, announced: true,
		facts: []fact{
			seen(xff("8.8.8.8", "1.1.1.1"), "1.1.1.1,8.8.8.8", "8.8.8.8", "8.8.8.8"),
			{caller: by(""), status: hungUp},
		},
		callers: announcedOnes,
		rls: []rlsCase{
			{xff("8.8.8.9", "8.8.8.8"), true},
			{by("8.8.8.9"), false},
			{by("8.8.8.8"), true},
		},
	},
	{
		name: "PROXY protocol, use_remote_address false", hcm: local, listener: announces, announced: true,
		facts:   []fact{seen(xff("8.8.8.8", "1.1.1.1"), "1.1.1.1", "", "1.1.1.1"), {caller: by(""), status: hungUp}},
		callers: announcedOnes,
	},
	{
		name: "PROXY protocol, behind proxies", hcm: remote, listener: announces, announced: true, trust: behindOne,
		callers: [][]caller{
			{xff("8.8.8.9", "1.1.1.1"), xff("8.8.8.9", "1.1.1.2, 10.0.0.3"), by("8.8.8.9")},
			{xff("10.0.0.3", "6.6.6.6, 2.2.2.9"), xff("10.0.0.3", "2.2.2.9"), xff("10.0.0.4", "2.2.2.9")},
			{xff("10.0.0.3", "1.1.1.1")},
			{xff("10.0.0.3", "1.1.1.2")},
		},
	},
}
