package bench

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Report is what came of a run.
type Report struct {
	Door        string  `json:"door"` // ext_authz, rls or http
	Callers     int     `json:"callers"`
	Connections int     `json:"connections"`
	Rate        float64 `json:"rate,omitempty"` // that was asked for; none in a closed loop
	Keys        uint64  `json:"keys"`
	Zipf        float64 `json:"zipf,omitempty"`

	Seconds   float64          `json:"seconds"`
	Requests  int64            `json:"requests"` // that ended, one way or another
	PerSecond float64          `json:"requests_per_second"`
	Answers   map[Answer]int64 `json:"answers"`
	// Unanswered is how many requests had no answer, and FirstError what one
	// of them said.
	Unanswered int64  `json:"unanswered"`
	FirstError string `json:"first_error,omitempty"`
	// Latency is of all requests. With a Rate it counts from when a request
	// was due, and Late is by how much they began after that.
	Latency Latency  `json:"latency_us"`
	Late    *Latency `json:"late_us,omitempty"`
	CPU     []CPU    `json:"cpu,omitempty"`
}

// A Latency is a distribution, in microseconds.
type Latency struct {
	Mean float64 `json:"mean"`
	Min  float64 `json:"min"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99.9"`
	Max  float64 `json:"max"`
}

// CPU is what one process used.
type CPU struct {
	PID        int     `json:"pid"`
	Seconds    float64 `json:"seconds"`
	PerRequest float64 `json:"us_per_request"`
}

func (l *loop) report(took time.Duration, used cpuTimes) Report {
	r := Report{
		Door: l.client.door, Callers: l.o.Callers, Connections: len(l.client.asks), Rate: l.o.Rate, Keys: l.o.Keys, Zipf: l.o.Zipf,
		Seconds: took.Seconds(), Answers: map[Answer]int64{},
	}
	latencies, late := newHistogram(), newHistogram()
	for _, c := range l.callers {
		latencies.Merge(c.latencies)
		if c.late != nil {
			late.Merge(c.late)
		}
		r.add(c)
	}
	r.PerSecond = float64(r.Requests) / r.Seconds
	r.Latency = latency(latencies)
	if l.o.Rate > 0 {
		began := latency(late)
		r.Late = &began
	}
	for _, p := range used {
		r.CPU = append(r.CPU, CPU{p.pid, p.cpu.Seconds(), p.cpu.Seconds() * 1e6 / float64(max(r.Requests, 1))})
	}
	return r
}

func (r *Report) add(c *caller) {
	for answer, n := range c.answers {
		r.Answers[answer] += n
		r.Requests += n
		if answer != OK && answer != Denied && answer != Unknown {
			r.Unanswered += n
		}
	}
	if c.failure != nil && r.FirstError == "" {
		r.FirstError = c.failure.Error()
	}
}

func latency(h *hdrhistogram.Histogram) Latency {
	at := func(percent float64) float64 { return float64(h.ValueAtPercentile(percent)) / 1e3 }
	return Latency{
		Mean: h.Mean() / 1e3, Min: float64(h.Min()) / 1e3, Max: float64(h.Max()) / 1e3,
		P50: at(50), P90: at(90), P99: at(99), P999: at(99.9),
	}
}

// Text writes r for people.
func (r Report) Text(w io.Writer) error {
	tab := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintf(tab, "%s\t%d requests in %.1f s, %.0f a second\n", r.Door, r.Requests, r.Seconds, r.PerSecond)
	fmt.Fprintf(tab, "asked by\t%s\n", r.asked())
	for _, answer := range slices.Sorted(maps.Keys(r.Answers)) {
		n := r.Answers[answer]
		fmt.Fprintf(tab, "%s\t%d, %.2f %%\n", answer, n, 100*float64(n)/float64(r.Requests))
	}
	if r.FirstError != "" {
		fmt.Fprintf(tab, "an error\t%s\n", r.FirstError)
	}
	fmt.Fprintf(tab, "latency\t%s\n", r.Latency)
	if r.Late != nil {
		fmt.Fprintf(tab, "began late\t%s\n", r.Late)
	}
	for _, c := range r.CPU {
		fmt.Fprintf(tab, "process %d\t%.2f s of CPU, %.1f µs a request\n", c.PID, c.Seconds, c.PerRequest)
	}
	return tab.Flush()
}

func (r Report) asked() string {
	loop := "as fast as they are answered"
	if r.Rate > 0 {
		loop = fmt.Sprintf("%g requests a second", r.Rate)
	}
	return fmt.Sprintf("%s on %s, for %s, %s", count(r.Callers, "caller"), count(r.Connections, "connection"), count(r.Keys, "key"), loop)
}

func count[N int | uint64](n N, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// String says l for people.
func (l Latency) String() string {
	return fmt.Sprintf("p50 %.0f µs, p90 %.0f, p99 %.0f, p99.9 %.0f, max %.0f, mean %.0f", l.P50, l.P90, l.P99, l.P999, l.Max, l.Mean)
}
