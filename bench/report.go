package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/sluice-mesh/sluice/bench/sheet"
)

// A series is a value for each round. In JSON one that is no number, since a
// base used less CPU than a tick, is null.
type series []float64

// MarshalJSON never fails.
func (s series) MarshalJSON() ([]byte, error) {
	numbers := make([]*float64, len(s))
	for i, x := range s {
		if !math.IsInf(x, 0) && !math.IsNaN(x) {
			numbers[i] = &s[i]
		}
	}
	return json.Marshal(numbers)
}

// spread writes the median, and the least and the most.
func spread(values []float64) string {
	return fmt.Sprintf("%.2f (%.2f to %.2f)", sheet.Median(values), slices.Min(values), slices.Max(values))
}

// atLeast and atMost write a goal, and whether it is reached.
func atLeast(values []float64, want float64) string {
	return verdict(want, sheet.Median(values) >= want)
}

func atMost(values []float64, want float64) string {
	return verdict(want, sheet.Median(values) <= want)
}

func verdict(want float64, reached bool) string {
	switch {
	case want == 0:
		return ""
	case reached:
		return fmt.Sprintf("%.2f, yes", want)
	default:
		return fmt.Sprintf("%.2f, no", want)
	}
}

var (
	workHeads = []string{"work", "requests/s", "share of the base", "goal, reached", "by CPU", "CPU a request", "over the base's", "goal, reached"}
	stepHeads = []string{"step", "CPU", "allocations", "goal, at most", "reached"}
	waitHeads = []string{"one caller", "p50", "floor's", "EVALSHA's", "over their sum", "goal, reached", "floor's with an EVALSHA", "over that"}
)

func (r row) cells() []string {
	return []string{
		r.Work, fmt.Sprintf("%.0f", sheet.Median(r.Rates)), spread(r.Shares), atLeast(r.Shares, r.Goal.rate), fmt.Sprintf("%.2f", sheet.Median(r.BothShares)),
		fmt.Sprintf("%.0f µs", sheet.Median(r.CPU)), spread(r.CPUShares), atMost(r.CPUShares, r.Goal.cpu),
	}
}

func (w wait) cells() []string {
	return []string{
		w.Work, fmt.Sprintf("%.0f µs", sheet.Median(w.P50)), fmt.Sprintf("%.0f µs", sheet.Median(w.Floor)), fmt.Sprintf("%.0f µs", sheet.Median(w.EVALSHA)),
		spread(w.Ratios), atMost(w.Ratios, waitGoal), fmt.Sprintf("%.0f µs", sheet.Median(w.Charging)), spread(w.OverCharging),
	}
}

func (s step) cells() []string {
	reached := "no"
	if s.ok {
		reached = "yes"
	}
	return []string{s.Step, fmt.Sprintf("%.0f ns", s.Nanos), fmt.Sprintf("%.0f", s.Allocs), s.Goal, reached}
}

// tables are the heads and cells of what was found.
func (f found) tables() [][][]string {
	works, waits, steps := [][]string{workHeads}, [][]string{waitHeads}, [][]string{stepHeads}
	for _, r := range f.Works {
		works = append(works, r.cells())
	}
	for _, w := range f.Alone {
		waits = append(waits, w.cells())
	}
	for _, s := range f.Steps {
		steps = append(steps, s.cells())
	}
	if len(f.Alone) == 0 {
		return [][][]string{works, steps}
	}
	return [][][]string{works, waits, steps}
}

func (f found) text(w io.Writer) error {
	for _, table := range f.tables() {
		tab := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
		for _, cells := range table {
			fmt.Fprintln(tab, strings.Join(cells, "\t"))
		}
		if err := tab.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func (f found) markdown(o options) string {
	var b strings.Builder
	drawing := filepath.Base(drawnBeside(o.write))
	fmt.Fprintf(&b, head, o.rounds, o.time, drawing, runtime.NumCPU(), o.callers, o.conns, o.rounds, o.time)
	for _, table := range f.tables() {
		b.WriteString(sheet.Table(table[0], table[1:]))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

const head = `# Performance

Written by ` + "`go run ./bench -redis \"$(command -v redis-server)\" -rounds %d -time %s -write docs/performance.md`" + `, which measures all of it in one
run (` + "`make bench`" + ` with its own rounds); edit [bench/](../bench) instead.

![the share of the base of each work, beside its goal](%s)

What counts is the share of a floor: a bare gRPC server in Go that decodes the same request and answers at once. It is asked right before each
work, in the same run, on the same machine (%d cores, shared by the callers, the servers, Redis, and whatever else ran), by %d callers on %d connections;
%d rounds of %s each, of which a cell has the median, and in brackets the least and the most. The callers read of an answer only what was decided.

"Share" is of the base's requests a second; the base is the floor, or, in a line with "over", the same work with the smaller number. "By CPU" is the
share that the CPU time of callers and servers together says, which other work on the machine disturbs less. "CPU a request" is that of the limiter's
process, and of Redis where there is one. "The floor with a raw EVALSHA a request" is a floor that, before it answers, takes a token by a short script
over a socket of its own: what a request costs that shares no round trip with others.

"Over their sum" is the median of one caller over those of the floor and of an EVALSHA, each by itself: in such a loop Redis's core never falls asleep,
while in a request each step wakes another process, so that no server reaches their sum where that takes long, as in a virtual machine. "Over that" is the
median over that of the floor with an EVALSHA in each request, where the same processes take the same steps: about the least that a server in Go can be.

`
