package sim

import "github.com/HdrHistogram/hdrhistogram-go"

// A Report is what came of a run. Requests are of all of it; the rest is of
// the time after the warm-up and before the end.
type Report struct {
	Scenario Scenario `json:"scenario"`
	Requests Requests `json:"requests"`
	Exact    Exact    `json:"exact"`
	Latency  Latency  `json:"latency_us"`
	Store    Store    `json:"store"`
	// Nodes and Replicas are the share of its time that each was busy.
	Nodes    []float64 `json:"nodes"`
	Replicas []float64 `json:"replicas"`
	Slots    []Slot    `json:"slots"`
	Keys     []Key     `json:"keys"` // the most asked for, and of those over their limits
}

// Requests are counted once each: Arrived is the sum of the others.
type Requests struct {
	Arrived  int64 `json:"arrived"`
	Admitted int64 `json:"admitted"`
	Denied   int64 `json:"denied"`
	Failed   int64 `json:"failed"` // on_error decides
	// Of Failed: no answer before the deadline, a full queue, a replica that
	// died.
	Late int64 `json:"failed_late"`
	Full int64 `json:"failed_full"`
	Died int64 `json:"failed_died"`
}

// Exact compares with one bucket a key that is asked at once when a request is
// sent, and is always there.
type Exact struct {
	Ideal int64 `json:"ideal"` // what that admits
	// More and Less are the sums, over all keys, of what was admitted beyond
	// that and short of it.
	More int64 `json:"more"`
	Less int64 `json:"less"`
	// Broken is in how many windows more tokens left a bucket than burst and
	// rate allow.
	Broken int64 `json:"broken"`
	// Lost are tokens that were taken for requests that had no answer.
	Lost int64 `json:"lost"`
}

// A Latency is a distribution, in µs, from when an Envoy asks to when it has an
// answer.
type Latency struct {
	Mean float64 `json:"mean"`
	P50  int64   `json:"p50"`
	P90  int64   `json:"p90"`
	P99  int64   `json:"p99"`
	P999 int64   `json:"p99.9"`
	Max  int64   `json:"max"`
}

// Store is what was asked of all nodes.
type Store struct {
	Batches int64 `json:"batches"`
	Scripts int64 `json:"scripts"`
	Charges int64 `json:"charges"`
	// Remembered are denials that were not asked about, and Leased tokens that
	// were spent without asking, both of all of the run.
	Remembered int64 `json:"remembered"`
	Leased     int64 `json:"leased"`
}

// A Slot is what ended within a tenth of a second.
type Slot struct {
	Requests int64 `json:"requests"`
	Failed   int64 `json:"failed"`
	P50      int64 `json:"p50_us"`
	P99      int64 `json:"p99_us"`
}

// A Key is one tenant.
type Key struct {
	Tenant   int   `json:"tenant"`
	Limit    int64 `json:"limit"`
	Per      int64 `json:"per_s"`
	Over     bool  `json:"over"`
	Arrived  int64 `json:"arrived"`
	Ideal    int64 `json:"ideal"`
	Admitted int64 `json:"admitted"`
	Broken   int64 `json:"broken"`
}

func (w *world) report() Report {
	y := w.tally
	r := Report{Scenario: w.s, Latency: latencyOf(y.latency), Store: Store{Remembered: y.remembered, Leased: y.leased}, Exact: Exact{Lost: y.lost}}
	r.Requests = Requests{
		Arrived: y.arrived, Admitted: y.admitted, Denied: y.answered - y.admitted, Failed: y.failed[tooLate] + y.failed[noRoom] + y.failed[diedOnIt],
		Late: y.failed[tooLate], Full: y.failed[noRoom], Died: y.failed[diedOnIt],
	}
	for i := range y.keys {
		r.Exact.add(&y.keys[i])
	}
	counted := float64(w.s.Time - w.s.WarmUp)
	for i := range w.nodes {
		n := &w.nodes[i]
		r.Nodes = append(r.Nodes, float64(n.used)/counted)
		r.Store.Batches += n.batches
		r.Store.Scripts += n.scripts
		r.Store.Charges += n.charges
	}
	for i := range w.replicas {
		r.Replicas = append(r.Replicas, float64(w.replicas[i].used)/counted/float64(w.s.Cores))
	}
	for _, s := range y.slots {
		r.Slots = append(r.Slots, Slot{s.latency.TotalCount(), s.failed, s.latency.ValueAtPercentile(50), s.latency.ValueAtPercentile(99)})
	}
	r.Keys = w.chosen()
	return r
}

func (e *Exact) add(k *keyTally) {
	e.Ideal += k.ideal
	e.More += max(k.admitted-k.ideal, 0)
	e.Less += max(k.ideal-k.admitted, 0)
	e.Broken += k.broken
}

func latencyOf(h *hdrhistogram.Histogram) Latency {
	return Latency{
		Mean: h.Mean(), P50: h.ValueAtPercentile(50), P90: h.ValueAtPercentile(90), P99: h.ValueAtPercentile(99),
		P999: h.ValueAtPercentile(99.9), Max: h.Max(),
	}
}

// chosen are the first three tenants, and the first three that are over their
// limits.
func (w *world) chosen() []Key {
	const each = 3
	var keys []Key
	below, over := 0, 0
	for k := range w.tally.keys {
		count := &below
		if w.tenants.over[k] {
			count = &over
		}
		if *count++; *count > each {
			continue
		}
		t := &w.tally.keys[k]
		l := w.tenants.limits[k].At(0)
		keys = append(keys, Key{k, l.Tokens, int64(l.Per.Seconds()), w.tenants.over[k], t.arrived, t.ideal, t.admitted, t.broken})
	}
	return keys
}
