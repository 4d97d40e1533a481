package chaos_test

import (
	"fmt"
	"os"
	"testing"

	rlcommonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/sluice-mesh/sluice/internal/bench"
	"github.com/sluice-mesh/sluice/test/stack"
)

const crowdPolicy = `domain: edge
rules:
  - {name: ip, match: {path: /ip}, per: [ip], limits: [{rate: 2/1d}]}
  - {name: header, match: {path: /header}, per: [header.x-anything], limits: [{rate: 2/1d}]}
  - {name: rls, descriptor: [who], limits: [{rate: 2/1d}]}
`

// A crowd is how many callers there are, and how much memory for them.
type crowd struct {
	limit         string
	keys, headers uint64
	names         int // of domains, descriptors and paths that no rule has
}

func crowdOf() crowd {
	if os.Getenv("SLUICE_TEST_LONG") != "" {
		return crowd{"64MiB", 5_000_000, 1_000_000, 100_000}
	}
	return crowd{"1MiB", 20_000, 10_000, 500}
}

// TestCrowd has far more callers come than there is room for. Those who were
// there before are told the same as then, and nothing that a client makes up
// becomes a series.
func TestCrowd(t *testing.T) {
	t.Parallel()
	c := crowdOf()
	e := serve(t, "--policy", policyOf(t, crowdPolicy), "--memory-limit", c.limit)
	a := newAsker(t, e.GRPC)
	a.want(t, "/ip", "198.51.100.1", 200, 200, 429) // has spent all
	a.want(t, "/ip", "198.51.100.2", 200)           // has one left

	fill(t, e, c)
	if refused := scrape(t, e.Admin)[`sluice_memory_refused_total{store="memory"}`]; refused == 0 {
		t.Fatal("no key was refused, want the memory full by now")
	}
	made(t, a, c.names/2)
	series := len(scrape(t, e.Admin))

	fill(t, e, c)
	made(t, a, c.names)
	if got := len(scrape(t, e.Admin)); got != series || got > 400 {
		t.Errorf("%d series after as many callers again, want the %d before, of 400 at most", got, series)
	}
	a.want(t, "/ip", "198.51.100.1", 429)
	a.want(t, "/ip", "198.51.100.2", 200, 429)
	a.want(t, "/ip", "198.51.100.3", 429) // is new, and there is no room
}

// fill has every caller of c ask by address, by header and over the rate limit
// service: each once, if the draw were even.
func fill(t *testing.T, e *stack.Extauthz, c crowd) {
	t.Helper()
	for _, one := range []struct {
		keys    uint64
		request bench.Request
	}{
		{c.keys, bench.Authz{Path: "/ip", Peer: "10.0.0.0/8"}},
		{c.headers, bench.Authz{Path: "/header", Headers: []bench.Entry{{Key: "x-anything", Value: "value-{key}"}}}},
		{c.headers, bench.RLS{Domain: "edge", Descriptors: [][]bench.Entry{{{Key: "who", Value: "{key}"}}}}},
	} {
		client, err := bench.Dial(bench.Target{Addr: e.GRPC, Connections: 4}, one.request)
		if err != nil {
			t.Fatal(err)
		}
		r, err := bench.Run(t.Context(), client, bench.Options{Callers: 64, Keys: one.keys, Requests: int64(one.keys), Timeout: patience})
		if err != nil || r.Unanswered > 0 || r.Requests < int64(one.keys) {
			t.Errorf("Run(%+v) = %+v, %v, want all requests answered", one.request, r, err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
}

// made asks for n domains, descriptors and paths that there are no rules for.
func made(t *testing.T, a *asker, n int) {
	t.Helper()
	rls := rlsv3.NewRateLimitServiceClient(a.conn)
	for i := range n {
		name := fmt.Sprint("made-up-", i)
		a.want(t, "/"+name, "198.51.100.9", 200)
		for _, domain := range []string{name, "edge"} {
			resp, err := rls.ShouldRateLimit(t.Context(), &rlsv3.RateLimitRequest{
				Domain: domain, Descriptors: []*rlcommonv3.RateLimitDescriptor{{Entries: []*rlcommonv3.RateLimitDescriptor_Entry{{Key: name, Value: name}}}},
			})
			if err != nil || resp.GetOverallCode() != rlsv3.RateLimitResponse_OK {
				t.Fatalf("ShouldRateLimit(%s, %s) = %v, %v, want OK", domain, name, resp, err)
			}
		}
	}
}
