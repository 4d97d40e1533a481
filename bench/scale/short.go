package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/sluice-mesh/sluice/bench/scale/sim"
	"github.com/sluice-mesh/sluice/bench/sheet"
)

// short is what the page comes to.
func (p page) short() string {
	c := p.e.costs
	broken := int64(0)
	for _, r := range append(p.runs, p.hot...) {
		broken += r.Exact.Broken
	}
	first, last := p.runs[0], p.runs[len(p.runs)-1]
	var b strings.Builder
	fmt.Fprintf(&b, "- **%s requests a second** take %d Redis nodes and %.0f cores of extauthz, none busier than %.0f %% on the mean, if every request is a charge.\n",
		sheet.Grouped(p.o.rate), p.e.nodes, p.e.cores, 100*p.o.use)
	fmt.Fprintf(&b, "- **Batches are for one Redis.** Spread over so many nodes, a replica has %.1f requests for a node in the time of a round trip: each pays for its own, and in a\n"+
		"  Cluster a slot's script (%.1f µs of %.1f) besides. On one Redis, with 64 callers on one replica, a charge costs %.1f µs.\n",
		p.e.size, c.Script/1000, p.e.charge/1000, p.m.named("redis, 64 callers").RedisCPU)
	fmt.Fprintf(&b, "- **One key is one core**: %s requests a second of it were answered without leases, and %s with them.\n", served(p.hot, false), served(p.hot, true))
	fmt.Fprintf(&b, "- **The busiest node** was busy for %.0f %% of the time without leases and for %.0f %% with them; requests with no answer went from %.2f %% to %.2f %%.\n",
		100*most(first.Nodes), 100*most(last.Nodes), unanswered(first), unanswered(last))
	fmt.Fprintf(&b, "- **Never too many**: in all of the runs %d windows had more tokens than burst and rate allow.\n\n", broken)
	return b.String()
}

func most(shares []float64) (most float64) {
	for _, s := range shares {
		most = math.Max(most, s)
	}
	return most
}

// unanswered is the percentage of requests that had no answer of the store.
func unanswered(r sim.Report) float64 {
	return 100 * float64(r.Requests.Failed) / float64(r.Requests.Arrived)
}

// served is the most that one key was asked for, with or without leases, of
// which 99 in 100 had an answer.
func served(hot []sim.Report, leased bool) string {
	best := "fewer"
	for _, r := range hot {
		if (r.Scenario.Leases.Share > 0) == leased && unanswered(r) < 1 {
			best = sheet.Grouped(r.Scenario.Traffic.Rate)
		}
	}
	return best
}
