package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sluice-mesh/sluice/bench/scale/sim"
	"github.com/sluice-mesh/sluice/bench/sheet"
)

// command is how the page is made again.
func (p page) command() string {
	return fmt.Sprintf("go run ./bench/scale -seed %d -write docs/scale.md", p.o.seed)
}

// markdown is the page.
func (p page) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, head, p.command(), p.m.Cores, p.m.Go, p.m.Redis)
	b.WriteString(p.short())
	b.WriteString(p.topology())
	b.WriteString(p.measured())
	b.WriteString(p.steps())
	fmt.Fprintf(&b, arithmeticHead, sheet.Grouped(p.o.rate), 100*p.o.use, p.o.seed)
	b.WriteString(sheet.Table([]string{"what", "formula", "comes to"}, p.cells()))
	b.WriteString(p.oneKey())
	b.WriteString(p.simulated())
	b.WriteString(tail)
	return b.String()
}

func (p page) topology() string {
	return fmt.Sprintf("```\n"+
		"  %4d Envoys ──── each asks every replica in turn ────┐\n"+
		"                                                      ▼\n"+
		"  %4d replicas, %d cores:  rules → denial cache → a queue to each node\n"+
		"                                                      │  what comes while a round trip\n"+
		"                                                      │  is under way goes as one batch\n"+
		"                                                      ▼\n"+
		"  %4d Redis nodes, one core each: a bucket lives on one of them, by its slot\n"+
		"```\n\n", p.o.envoys, p.o.replicas, cores, p.e.nodes)
}

// measured is what a request costs here.
func (p page) measured() string {
	base := p.m.named("redis, 64 callers")
	cell := func(of float64, format string, values ...any) string {
		if of == 0 {
			return "–"
		}
		return fmt.Sprintf(format, values...)
	}
	var rows [][]string
	for _, t := range p.m.Turns {
		rows = append(rows, []string{
			t.Name, cell(t.ReplicaCPU, "%.0f µs, %.2f", t.ReplicaCPU, t.ReplicaCPU/base.ReplicaCPU),
			cell(t.RedisCPU, "%.1f µs, %.2f", t.RedisCPU, t.RedisCPU/base.RedisCPU), cell(t.Reads, "%.1f", 1/t.Reads), cell(t.Reads, "%.2f", t.Scripts),
		})
	}
	text := fmt.Sprintf(measuredHead, p.m.Rounds, p.m.Time)
	text += sheet.Table([]string{"what is asked", "CPU of the replicas", "CPU of Redis", "requests a batch", "scripts a request"}, rows)
	if len(p.m.Flat) == 0 {
		return text
	}
	rows = nil
	for _, f := range p.m.Flat {
		rows = append(rows, []string{f.Work, fmt.Sprintf("%.0f µs", f.CPU), fmt.Sprintf("%.2f (%.2f to %.2f)", f.Share, f.Least, f.Most)})
	}
	return text + flatHead + sheet.Table([]string{"what is asked", "CPU of the replica", "over the CPU with 10"}, rows)
}

// steps is what the measurements say that each step costs.
func (p page) steps() string {
	c := p.e.costs
	us := func(ns float64) string { return fmt.Sprintf("%.1f µs", ns/1000) }
	return stepsHead + sheet.Table([]string{"step", "CPU", "of"}, [][]string{
		{"receive, answer", us(c.Receive + c.Answer), "a replica, for a request"},
		{"ask", us(c.Ask), "a replica, for a request that it asks a node about"},
		{"send", us(c.Send), "a replica, for a script: one a slot"},
		{"batch", us(c.Batch), "a replica, for a round trip to a node"},
		{"round trip", us(c.RoundTrip), "a node, for a batch"},
		{"script", us(c.Script), "a node, for a script: one a slot"},
		{"key", us(c.Key), "a node, for a bucket that is read"},
		{"write", us(c.Write), "a node, for a bucket that is charged"},
		{"charge", us(c.Charge), "a node, for a charge"},
	})
}

func (p page) cells() [][]string {
	var rows [][]string
	for _, l := range p.e.lines {
		rows = append(rows, []string{l.what, l.formula, l.value})
	}
	return rows
}

// arithmetic prints it alone.
func (p page) arithmetic(w io.Writer) error {
	_, err := io.WriteString(w, sheet.Table([]string{"what", "formula", "comes to"}, p.cells()))
	return err
}

// oneKey is what one core makes of one key.
func (p page) oneKey() string {
	c := p.e.costs
	var rows [][]string
	for _, size := range []float64{1, 8, 32, 128} {
		rows = append(rows, []string{fmt.Sprintf("%.0f", size), sheet.Grouped(hotCharges(c, size))})
	}
	return oneKeyHead + sheet.Table([]string{"charges a batch", "charges a second, at most"}, rows) + spareHead + sheet.Table([]string{"what", "formula", "comes to"}, p.spared())
}

// spared is what is asked about one key all the same, where replicas know by
// themselves.
func (p page) spared() [][]string {
	n, lasts := float64(p.o.replicas), leases.For*9/10
	return [][]string{
		{
			fmt.Sprintf("the denial cache, for a key over %d a minute", plan), fmt.Sprintf("%d replicas × once a token, once a second at least", p.o.replicas),
			sheet.Grouped(n*max(plan/60, 1)) + " a second",
		},
		{
			fmt.Sprintf("leases for %v, of a key below its limit", leases.For), fmt.Sprintf("%d replicas × (take + give back) ÷ %v", p.o.replicas, lasts),
			sheet.Grouped(2*n/lasts.Seconds()) + " a second",
		},
		{
			"tokens in leases, which others do not find", fmt.Sprintf("%d replicas × at most %d %% of the burst", p.o.replicas, leases.Share/100),
			fmt.Sprintf("at most %d %%", min(int64(p.o.replicas)*leases.Share/100, 100)),
		},
	}
}

// simulated is what the simulation found.
func (p page) simulated() string {
	s := p.runs[0].Scenario
	text := fmt.Sprintf(simulatedHead, p.command(), s.Time, sheet.Grouped(s.Traffic.Rate), s.Traffic.Envoys, 100*s.Traffic.Bursty, s.Traffic.Burst,
		sheet.Grouped(s.Tenants.Count), s.Tenants.Zipf, s.Tenants.Plan, s.Network.Base, s.Network.Jitter, 100*s.Network.Tail, s.Network.Long,
		s.Deadline, s.Slow.Factor, s.Slow.For, s.Death.Noticed)
	heads := []string{""}
	for _, r := range p.runs {
		heads = append(heads, r.Scenario.Name)
	}
	var rows [][]string
	for _, f := range facts {
		row := []string{f.name}
		for _, r := range p.runs {
			row = append(row, f.of(r))
		}
		rows = append(rows, row)
	}
	text += sheet.Table(heads, rows)
	text += fmt.Sprintf("![p99 over time](%s)\n\n![how busy each node was](%s)\n\n", latencyDrawing, nodesDrawing)
	return text + p.keys() + p.hotKeys()
}

// A fact is a line of the table of runs.
type fact struct {
	name string
	of   func(r sim.Report) string
}

func number(of func(r sim.Report) int64) func(r sim.Report) string {
	return func(r sim.Report) string { return sheet.Grouped(of(r)) }
}

var facts = []fact{
	{"requests", number(func(r sim.Report) int64 { return r.Requests.Arrived })},
	{"admitted", number(func(r sim.Report) int64 { return r.Requests.Admitted })},
	{"denied", number(func(r sim.Report) int64 { return r.Requests.Denied })},
	{"no answer of the store: late, by the replica's death", func(r sim.Report) string {
		return sheet.Grouped(r.Requests.Late+r.Requests.Full) + ", " + sheet.Grouped(r.Requests.Died)
	}},
	{"an ideal bucket admits", number(func(r sim.Report) int64 { return r.Exact.Ideal })},
	{"fewer than that, over all keys", func(r sim.Report) string {
		return fmt.Sprintf("%s (%.2f %%)", sheet.Grouped(r.Exact.Less), 100*float64(r.Exact.Less)/float64(r.Exact.Ideal))
	}},
	{"more than that, over all keys", number(func(r sim.Report) int64 { return r.Exact.More })},
	{"**windows with more than burst + rate × w**", func(r sim.Report) string { return fmt.Sprintf("**%d**", r.Exact.Broken) }},
	{"tokens taken for requests that had no answer", number(func(r sim.Report) int64 { return r.Exact.Lost })},
	{"charges that Redis was asked for, a request", func(r sim.Report) string {
		s := r.Scenario
		return fmt.Sprintf("%.2f", float64(r.Store.Charges)/s.Traffic.Rate/(s.Time-s.WarmUp).Seconds())
	}},
	{"charges a batch", func(r sim.Report) string {
		return fmt.Sprintf("%.2f", float64(r.Store.Charges)/float64(r.Store.Batches))
	}},
	{"nodes busy: mean, most", func(r sim.Report) string { return meanAndMost(r.Nodes) }},
	{"replicas busy: mean, most", func(r sim.Report) string { return meanAndMost(r.Replicas) }},
	{"p50", func(r sim.Report) string { return micros(r.Latency.P50) }},
	{"p99", func(r sim.Report) string { return micros(r.Latency.P99) }},
	{"p99.9", func(r sim.Report) string { return micros(r.Latency.P999) }},
}

func meanAndMost(shares []float64) string {
	sum := 0.0
	for _, s := range shares {
		sum += s
	}
	return fmt.Sprintf("%.0f %%, %.0f %%", 100*sum/float64(len(shares)), 100*slices.Max(shares))
}

func micros(us int64) string {
	if us < 1000 {
		return fmt.Sprintf("%d µs", us)
	}
	return fmt.Sprintf("%.1f ms", float64(us)/1000)
}

// keys is what became of some tenants.
func (p page) keys() string {
	heads := []string{"tenant", "limit", "asked, a second", "ideal"}
	for _, r := range p.runs {
		heads = append(heads, r.Scenario.Name)
	}
	var rows [][]string
	for i, k := range p.runs[0].Keys {
		row := []string{
			fmt.Sprint(k.Tenant + 1), sheet.Grouped(k.Limit) + map[int64]string{1: "/s", 60: "/min"}[k.Per], sheet.Grouped(float64(k.Arrived) / p.runs[0].Scenario.Time.Seconds()),
			sheet.Grouped(k.Ideal),
		}
		for _, r := range p.runs {
			row = append(row, sheet.Grouped(r.Keys[i].Admitted))
		}
		rows = append(rows, row)
	}
	return keysHead + sheet.Table(heads, rows)
}

// hotKeys is one key, ever hotter.
func (p page) hotKeys() string {
	var rows [][]string
	for _, r := range p.hot {
		rows = append(rows, []string{
			sheet.Grouped(r.Scenario.Traffic.Rate), map[bool]string{true: "yes", false: "no"}[r.Scenario.Leases.Share > 0], fmt.Sprintf("%.0f %%", 100*r.Nodes[0]), fmt.Sprintf("%.1f", float64(r.Store.Charges)/float64(r.Store.Batches)),
			micros(r.Latency.P50), micros(r.Latency.P99), fmt.Sprintf("%.2f %%", 100*float64(r.Requests.Failed)/float64(r.Requests.Arrived)),
		})
	}
	return hotHead + sheet.Table([]string{"requests a second", "leases", "node busy", "charges a batch", "p50", "p99", "no answer"}, rows)
}
