package e2e_test

import (
	"net"
	"os"
	"slices"
	"strings"
	"testing"
)

// v6 is the one IPv6 address that every machine has for its clients. For it
// Envoy appends an address of its own machine.
const v6 = "::1"

const (
	dual   = "{socket_address: {address: '::', ipv4_compat: true, PORT}}"
	both   = "{socket_address: {address: 127.0.0.1, PORT}}"
	alsoV6 = "additional_addresses: [{address: {socket_address: {address: '::1', PORT}}}]"
)

// onThisMachine leaves out what needs IPv6 where there is none. In CI there
// must be.
func onThisMachine(t *testing.T, setups []trustSetup) []trustSetup {
	t.Helper()
	l, err := net.Listen("tcp6", "[::1]:0")
	if err == nil {
		_ = l.Close()
		return setups
	}
	if os.Getenv("CI") != "" {
		t.Fatal(err)
	}
	t.Logf("without IPv6: %v", err)
	return slices.DeleteFunc(setups, func(s trustSetup) bool { return strings.Contains(s.at+s.listener, "::") })
}

var addressSetups = []trustSetup{
	{
		name: "IPv6 listener", hcm: remote, at: both, listener: alsoV6,
		facts: []fact{{
			caller: by(v6), rls: "::1 ::/64",
			headers: map[string]string{"x-forwarded-for": anything, "x-envoy-external-address": v6},
		}},
		callers: [][]caller{{xff(v6, "2001:db8::1"), by(v6), xff(v6, other), by(v6, external, other)}, {by(other)}},
		rls:     []rlsCase{{xff(v6, other), true}, {by(v6), false}, {by(other), true}},
	},
	{
		name: "IPv6 listener for IPv4", hcm: remote, at: dual,
		facts: []fact{
			seen(by(balancer), balancer, balancer, balancer),
			seen(xff(balancer, "::ffff:1.1.1.1"), "::ffff:1.1.1.1,127.0.0.5", balancer, balancer),
			{caller: by(v6), rls: "::1 ::/64", headers: map[string]string{"x-envoy-external-address": v6}},
		},
		callers: append([][]caller{{xff(v6, balancer), by(v6)}}, alone...),
	},
	{
		name: "IPv6 listener behind proxies", hcm: local, at: dual, trust: "proxies: ['::1', 127.0.0.5]",
		callers: [][]caller{
			{xff(forger, "2001:db8::1"), xff(forger, "1.1.1.1"), by(forger), xff(forger, "::1")},
			{xff(v6, "1.1.1.1, 2001:db8:9::1"), xff(v6, "2001:db8:9::1"), xff(v6, "2001:db8:9::2"), xff(balancer, "2001:DB8:9:0::3")},
			{xff(v6, "2001:db8::1")},
			{xff(v6, "1.1.1.1"), xff(balancer, "1.1.1.1"), xff(balancer, "::ffff:1.1.1.1")},
			{xff(v6, "2001:db8::1, unknown"), by(v6)},
		},
	},
	{
		name: "IPv6 whole addresses", hcm: local, trust: behindOne + ", ipv6_prefix: 128",
		callers: [][]caller{
			{xff(balancer, "2001:db8::1"), xff(balancer, "[2001:0db8:0::1]:80")},
			{xff(balancer, "2001:db8::2")},
		},
	},
}

// A peer without an address: with proxies or without, a caller's ip is
// missing, and has to be allowed for.
var pipeSetups = []trustSetup{
	{
		name: "Unix socket", hcm: remote, at: "pipe", trust: behindOne,
		facts: []fact{{
			caller: xff("", "1.1.1.1"), source: anything,
			headers: map[string]string{"x-forwarded-for": "1.1.1.1", "x-envoy-external-address": ""},
		}},
		refused: []caller{by(""), xff("", "1.1.1.1"), xff("", "10.0.0.3"), by("", external, "1.1.1.1"), by("", realIP, "1.1.1.1")},
	},
	{
		name: "Unix socket, one hop", hcm: remote, at: "pipe", trust: "hops: 1",
		callers: [][]caller{
			{xff("", "1.1.1.1, 2.2.2.9"), xff("", "2.2.2.9"), xff("", "1.1.1.2,2.2.2.9:4711")},
			{xff("", "1.1.1.1")},
			{xff("", "1.1.1.2")},
		},
		refused: []caller{by(""), xff("", "1.1.1.1, unknown")},
	},
}
