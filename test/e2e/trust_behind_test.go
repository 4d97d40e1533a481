package e2e_test

// oneHop are callers behind one proxy that nobody knows by its address. A
// client that connects past it would choose its address: such an Envoy must be
// open to the proxy alone.
var oneHop = [][]caller{
	{
		xff(balancer, "1.1.1.1, 2.2.2.9"), xff(balancer, "2.2.2.9"), xff(balancer, "1.1.1.1, 1.1.1.2, 2.2.2.9"), xff(balancer, "x, 2.2.2.9:1"),
		by(balancer, forwardedFor, "1.1.1.1", forwardedFor, "2.2.2.9"), by(balancer, forwardedFor, "2.2.2.9", external, "1.1.1.1"),
	},
	{xff(balancer, "1.1.1.1")},
	{xff(balancer, "1.1.1.2"), xff(other, "1.1.1.2")}, // by another proxy
	{xff(balancer, "1.1.1.1, unknown"), by(balancer), xff(balancer, "")},
}

// twoHops are callers behind two.
var twoHops = [][]caller{
	{xff(balancer, "1.1.1.1, 2.2.2.9, 10.0.0.3"), xff(balancer, "2.2.2.9, 10.0.0.4"), xff(balancer, "1.1.1.1, 1.1.1.2, 2.2.2.9, unknown")},
	{xff(balancer, "1.1.1.1, 10.0.0.3")},
	{xff(balancer, "1.1.1.2, 10.0.0.3")},
	{xff(balancer, "1.1.1.1, unknown, 10.0.0.3"), xff(balancer, "10.0.0.3"), by(balancer)}, // too few
}

// Policies count as Envoy does with use_remote_address; without it Envoy
// counts one more.
var hopSetups = []trustSetup{
	{
		name: "use_remote_address true, one hop", hcm: remote + ", xff_num_trusted_hops: 1", trust: "hops: 1",
		facts: []fact{
			seen(xff(balancer, "1.1.1.1"), "1.1.1.1,127.0.0.5", "1.1.1.1", "1.1.1.1"),
			seen(xff(balancer, chainOf3), chainOf3+",127.0.0.5", "10.0.0.3", "10.0.0.3"),
			seen(xff(balancer, "unknown"), "unknown,127.0.0.5", balancer, balancer),
			seen(by(balancer), balancer, balancer, balancer),
		},
		callers: oneHop,
		rls: []rlsCase{
			{xff(balancer, "1.1.1.1, 2.2.2.9"), true},
			{xff(balancer, "1.1.1.2, 2.2.2.9"), false},
			{xff(balancer, "1.1.1.1"), true},
			{xff(balancer, "1.1.1.2"), true},
			{xff(forger, "1.1.1.3"), true}, // past the proxy: Envoy believes anybody, and so does hops
			{xff(forger, "1.1.1.4"), true},
		},
	},
	{
		name: "use_remote_address true, two hops", hcm: remote + ", xff_num_trusted_hops: 2", trust: "hops: 2",
		facts: []fact{
			seen(xff(balancer, chainOf3), chainOf3+",127.0.0.5", "2.2.2.2", "2.2.2.2"),
			seen(xff(balancer, "10.0.0.3"), "10.0.0.3,127.0.0.5", balancer, balancer),
		},
		callers: twoHops,
	},
	{
		name: "use_remote_address false, one hop", hcm: local + ", xff_num_trusted_hops: 1", trust: "hops: 2",
		facts:   []fact{seen(xff(balancer, chainOf3), chainOf3, "", "2.2.2.2")},
		callers: twoHops,
	},
	{
		name: "use_remote_address false, two hops", hcm: local + ", xff_num_trusted_hops: 2", trust: "hops: 3",
		facts: []fact{seen(xff(balancer, chainOf3), chainOf3, "", "1.1.1.1")},
		callers: [][]caller{
			{xff(balancer, "1.1.1.1, 2.2.2.9, 10.0.0.2, 10.0.0.3"), xff(balancer, "2.2.2.9, 10.0.0.2, 10.0.0.3")},
			{xff(balancer, "1.1.1.1, 10.0.0.2, 10.0.0.3")},
			{xff(balancer, "1.1.1.2, 10.0.0.2, 10.0.0.3")},
			{xff(balancer, "1.1.1.1, 10.0.0.3"), by(balancer)},
		},
	},
	{name: "use_remote_address false, one proxy", hcm: local, trust: "hops: 1", callers: oneHop},
	{name: "skip_xff_append, one proxy", hcm: remote + ", skip_xff_append: true", trust: "hops: 1", callers: oneHop},
}

// Proxies that say it in another header, which a client cannot reach past
// them.
var headerSetups = []trustSetup{
	{
		name: "x-real-ip", hcm: remote, trust: behindOne + ", header: x-real-ip",
		callers: [][]caller{
			{by(forger, realIP, "1.1.1.1"), by(forger, realIP, "1.1.1.2"), by(forger, realIP, other), by(forger)},
			{by(balancer, realIP, "2.2.2.9"), by(balancer, realIP, "2.2.2.9", forwardedFor, "1.1.1.1"), by(balancer, realIP, "1.1.1.1", realIP, "2.2.2.9")},
			{by(balancer, realIP, "1.1.1.1")},
			{by(balancer, realIP, "1.1.1.2")},
			{by(other)},
		},
	},
	{
		name: "forwarded", hcm: remote, trust: behindOne + ", header: forwarded",
		callers: [][]caller{
			{by(forger, "Forwarded", "for=1.1.1.1"), by(forger, "Forwarded", `for="[2001:db8::1]"`), by(forger)},
			{
				by(balancer, "Forwarded", "for=2.2.2.9"), by(balancer, "Forwarded", `for=1.1.1.1, FOR="2.2.2.9:80";proto=http;by=10.0.0.1`),
				by(balancer, "Forwarded", `for=1.1.1.1;by="`, "Forwarded", "for=2.2.2.9"),
				by(balancer, "Forwarded", "for=1.1.1.1, for=2.2.2.9, for=10.0.0.3"), by(balancer, "Forwarded", "for=2.2.2.9", forwardedFor, "1.1.1.1"),
			},
			{by(balancer, "Forwarded", "for=1.1.1.1")},
			{by(balancer, "Forwarded", `for="[2001:db8::1]:4711"`), by(balancer, "Forwarded", `For="[2001:db8::2]"`)},
			{by(balancer, "Forwarded", "for=1.1.1.1, for=_hidden"), by(balancer), by(balancer, "Forwarded", "for=unknown")},
		},
	},
	{
		// Envoy's own idea, for peers that cannot be anybody.
		name: "x-envoy-external-address", hcm: remote + ", xff_num_trusted_hops: 1", trust: behindOne + ", header: x-envoy-external-address",
		callers: [][]caller{
			{xff(forger, "1.1.1.1"), xff(forger, "1.1.1.2"), by(forger, external, "1.1.1.1"), by(forger, external, other), by(forger)},
			{xff(balancer, "1.1.1.1, 2.2.2.9"), xff(balancer, "2.2.2.9"), by(balancer, forwardedFor, "2.2.2.9", external, "1.1.1.1")},
			{xff(balancer, "1.1.1.1")},
			{xff(balancer, "1.1.1.2")},
			{by(other)},
		},
	},
}
