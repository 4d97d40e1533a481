package main

import (
	"strconv"

	"github.com/sluice-mesh/sluice/bench/sheet"
	"github.com/sluice-mesh/sluice/internal/bench"
)

// A side is something asked of a server, by its name in the lab.
type side struct {
	server  string
	request bench.Request
	keys    uint64
	want    bench.Answer
}

// A work is one line of the table: what is measured, and what it is a share of.
type work struct {
	name     string
	of, base side
	goal     goal
}

// A goal is what a work should reach, as shares of its base. 0 is no goal.
type goal struct {
	rate float64 // requests a second, at least
	cpu  float64 // CPU a request, at most
}

// The processes of the lab.
const (
	floorServer    = "floor"    // answers at once
	chargingServer = "charging" // takes from a bucket in a Redis first
	memoryServer   = "memory"   // extauthz serve
	redisServer    = "redis"    // extauthz serve, with a Redis
	fewServer      = "few"      // our server with ten buckets in memory
	loadedServer   = "loaded"   // and with many
	bareEnvoy      = "envoy"    // an Envoy that answers by itself
	askingEnvoy    = "asking"   // the same one, asking extauthz
)

const manyKeys = 100_000

// browser is what a browser sends through an Envoy at the edge, beside the
// four headers that make up HTTP/2's request line: 16, so that there are 20.
var browser = []bench.Entry{
	{Key: "user-agent", Value: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"},
	{Key: "accept", Value: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"},
	{Key: "accept-language", Value: "en-GB,en;q=0.7,de;q=0.3"},
	{Key: "accept-encoding", Value: "gzip, deflate, br, zstd"},
	{Key: "referer", Value: "https://shop.example.com/catalogue?page=3"},
	{Key: "cookie", Value: "session=5f0d3a9c1b7e4d2f8a6c; theme=dark; consent=yes"},
	{Key: "authorization", Value: "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"},
	{Key: "content-type", Value: "application/json"},
	{Key: "cache-control", Value: "no-cache"},
	{Key: "sec-fetch-dest", Value: "document"},
	{Key: "sec-fetch-mode", Value: "navigate"},
	{Key: "sec-fetch-site", Value: "same-origin"},
	{Key: "x-forwarded-proto", Value: "https"},
	{Key: "x-forwarded-for", Value: "203.0.113.7, 198.51.100.4"},
	{Key: "x-request-id", Value: "0b0d3c1e-7f6d-4a77-9a13-5c5b2d0f7d11"},
	{Key: "x-envoy-external-address", Value: "198.51.100.4"},
}

func limits(descriptors ...bench.Entry) bench.RLS {
	r := bench.RLS{Domain: "bench"}
	for _, e := range descriptors {
		r.Descriptors = append(r.Descriptors, []bench.Entry{e})
	}
	return r
}

// onFloor is r asked of a server, and the same of the floor.
func onFloor(name, server string, r bench.Request, keys uint64, g goal) work {
	return work{name, side{server, r, keys, bench.OK}, side{floorServer, r, keys, bench.OK}, g}
}

var (
	hot   = limits(bench.Entry{Key: "generic_key", Value: "hot"})
	ahead = limits(bench.Entry{Key: "generic_key", Value: "leased"})
	user  = limits(bench.Entry{Key: "user", Value: "user-{key}"})
	both  = limits(bench.Entry{Key: "user", Value: "user-{key}"}, bench.Entry{Key: "tenant", Value: "tenant-{key}"})
	empty = limits(bench.Entry{Key: "generic_key", Value: "empty"})
	page  = bench.Authz{Path: "/service7/orders/{key}?page=3", Host: "shop.example.com", Headers: browser, Peer: "10.0.0.0/8"}
)

// works lists what is measured with what o has.
func works(o options) []work {
	all := []work{
		onFloor("RLS, memory, one hot key", memoryServer, hot, 1, goal{0.90, 1.25}),
		onFloor("RLS, memory, 100,000 keys", memoryServer, user, manyKeys, goal{0.87, 1.25}),
		onFloor("ext_authz, memory, 20 headers, 50 rules", memoryServer, page, manyKeys, goal{0.85, 1.25}),
	}
	if o.redis != "" {
		denials := onFloor("RLS, Redis, denials of an empty bucket", redisServer, empty, 1, goal{rate: 0.90})
		denials.of.want = bench.Denied
		all = append(all,
			onFloor("RLS, Redis, 100,000 keys", redisServer, user, manyKeys, goal{0.70, 2.2}),
			onFloor("RLS, Redis, one hot key, exact", redisServer, hot, 1, goal{rate: 0.78}),
			onFloor("RLS, Redis, one hot key, leased", redisServer, ahead, 1, goal{rate: 0.85}),
			onFloor("RLS, Redis, two descriptors, 100,000 keys each", redisServer, both, manyKeys, goal{rate: 0.55}),
			denials,
			onFloor("RLS, the floor with a raw EVALSHA a request", chargingServer, user, manyKeys, goal{}),
			onFloor("ext_authz, Redis, 20 headers, 50 rules", redisServer, page, manyKeys, goal{rate: 0.65}),
		)
	}
	if o.envoy != "" {
		get := bench.HTTP{Path: "/service7/{key}"}
		all = append(all, work{"HTTP through an Envoy that asks, memory", side{askingEnvoy, get, manyKeys, bench.OK}, side{bareEnvoy, get, manyKeys, bench.OK}, goal{}})
	}
	return append(all, flat(o)...)
}

// flat lists what should cost the same however much there is of it, as shares
// of what the least of it does.
func flat(o options) []work {
	var all []work
	within := goal{rate: 0.90}
	least := ruleCounts[0]
	for _, n := range ruleCounts[1:] {
		all = append(all,
			work{"RLS, memory, " + sheet.Grouped(n) + " rules over 10", entryOf(n), entryOf(least), within},
			work{"ext_authz, memory, " + sheet.Grouped(n) + " rules over 10", pathOf(n), pathOf(least), within},
		)
	}
	return append(all, work{
		"RLS, memory, " + sheet.Grouped(o.loaded) + " keys over 10",
		side{loadedServer, user, uint64(o.loaded), bench.OK},
		side{fewServer, user, 10, bench.OK},
		within,
	})
}

// entryOf and pathOf ask for the last ten of n rules.
func entryOf(n int) side {
	r := bench.RLS{Domain: ruleDomain(n), Descriptors: [][]bench.Entry{{{Key: "generic_key", Value: "entry" + last(n)}}}}
	return side{memoryServer, r, 10, bench.OK}
}

func pathOf(n int) side {
	r := bench.Authz{Path: "/path" + last(n) + "/x", Context: map[string]string{"domain": ruleDomain(n)}}
	return side{memoryServer, r, 10, bench.OK}
}

// last is the numbers of the last ten of n things: 0 to 9, or 990 to 999.
func last(n int) string {
	if n <= 10 {
		return "{key}"
	}
	return strconv.Itoa(n/10-1) + "{key}"
}
