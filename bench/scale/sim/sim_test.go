package sim_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/bench/scale/sim"
)

// small is a fleet under all that may happen to one, in a second.
func small() sim.Scenario {
	return sim.Scenario{
		Name: "small", Seed: 1, Time: time.Second, WarmUp: 100 * time.Millisecond,
		Traffic:  sim.Traffic{Envoys: 20, Rate: 20_000, Bursty: 0.5, Burst: 50 * time.Millisecond},
		Tenants:  sim.Tenants{Count: 1000, Zipf: 1.1, Plan: 600},
		Replicas: 5, Cores: 2, Nodes: 3, Deadline: 10 * time.Millisecond, DenialCache: true,
		Costs: sim.Costs{
			Receive: 20_000, Answer: 20_000, Ask: 5_000, Send: 3_000, Batch: 20_000,
			RoundTrip: 30_000, Script: 20_000, Key: 5_000, Write: 5_000, Charge: 2_000,
		},
		Network: sim.Network{Base: 80 * time.Microsecond, Jitter: 40 * time.Microsecond, Tail: 0.002, Long: 2 * time.Millisecond},
		Slow:    sim.Slow{Node: 1, From: 300 * time.Millisecond, For: 100 * time.Millisecond, Factor: 20},
		Death:   sim.Death{Replica: 2, At: 600 * time.Millisecond, Noticed: 50 * time.Millisecond},
	}
}

func run(t *testing.T, s sim.Scenario) sim.Report {
	t.Helper()
	r, err := sim.Run(s, nil)
	if err != nil {
		t.Fatalf("Run(%+v) = %v, want nil", s, err)
	}
	return r
}

// TestRunRepeats wants the same bytes of the same seed, and others of another.
func TestRunRepeats(t *testing.T) {
	t.Parallel()
	text := func(seed uint64) []byte {
		s := small()
		s.Seed = seed
		b, err := json.Marshal(run(t, s))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	first, again, other := text(1), text(1), text(2)
	if diff := cmp.Diff(string(first), string(again)); diff != "" {
		t.Errorf("two runs of one seed differ: %s", diff)
	}
	if bytes.Equal(bytes.ReplaceAll(other, []byte(`"seed":2`), []byte(`"seed":1`)), first) {
		t.Error("runs of two seeds are the same")
	}
}

// TestRunLosesNothing wants every request to end one way, and no bucket to give
// more than it may, whatever happens.
func TestRunLosesNothing(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*sim.Scenario){
		"all that may happen": func(*sim.Scenario) {},
		"leases":              func(s *sim.Scenario) { s.Leases = leases },
		"no denial cache":     func(s *sim.Scenario) { s.DenialCache = false },
		"nodes overloaded":    func(s *sim.Scenario) { s.Traffic.Rate, s.Cores = 120_000, 8 },
		"replicas overloaded": func(s *sim.Scenario) { s.Cores, s.Costs.Receive = 1, 400_000 },
		"one of each":         func(s *sim.Scenario) { s.Replicas, s.Nodes, s.Traffic.Envoys, s.Death = 1, 1, 1, sim.Death{} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := small()
			change(&s)
			r := run(t, s)
			q := r.Requests
			if q.Arrived == 0 || q.Arrived != q.Admitted+q.Denied+q.Failed || q.Failed != q.Late+q.Full+q.Died {
				t.Errorf("Run = %+v, want as many arrived as admitted, denied and failed", q)
			}
			if r.Exact.Broken != 0 {
				t.Errorf("Run = %+v, want no window with more than there may be", r.Exact)
			}
			if q.Admitted != r.Exact.Ideal+r.Exact.More-r.Exact.Less {
				t.Errorf("Run = %+v, %+v: the keys do not add up", q, r.Exact)
			}
		})
	}
}

// TestRunNoticesTrouble wants what a scenario has happen to be seen.
func TestRunNoticesTrouble(t *testing.T) {
	t.Parallel()
	r := run(t, small())
	if r.Requests.Died == 0 || r.Requests.Late == 0 || r.Exact.Lost == 0 || r.Store.Remembered == 0 {
		t.Errorf("Run = %+v, %+v, %+v, want some to fail by the slow node and the dead replica, and denials remembered", r.Requests, r.Exact, r.Store)
	}
	calm := small()
	calm.Slow, calm.Death, calm.Network.Tail = sim.Slow{}, sim.Death{}, 0
	if q := run(t, calm); q.Requests.Failed != 0 || q.Exact.Lost != 0 || q.Latency.P99 >= r.Latency.P99 {
		t.Errorf("Run = %+v, %+v, p99 %d µs, want nothing to fail without trouble, and less than %d µs", q.Requests, q.Exact, q.Latency.P99, r.Latency.P99)
	}
	if before, after := r.Slots[2], r.Slots[3]; after.P99 < 2*before.P99 {
		t.Errorf("p99 is %d µs before a node is slow and %d while it is, want more", before.P99, after.P99)
	}
}

// TestRunCloseToIdeal wants a fleet with no trouble to admit what one ideal
// bucket a key would, but for what was on its way.
func TestRunCloseToIdeal(t *testing.T) {
	t.Parallel()
	s := small()
	s.Slow, s.Death = sim.Slow{}, sim.Death{}
	r := run(t, s)
	if off := r.Exact.More + r.Exact.Less; off > r.Exact.Ideal/1000 {
		t.Errorf("Run = %+v, want no more than a thousandth off", r.Exact)
	}
	if r.Exact.Ideal == r.Requests.Arrived {
		t.Errorf("Run = %+v, want some over their limits", r.Requests)
	}
}

var leases = sim.Leases{Share: 100, For: 50 * time.Millisecond, Least: 200}

// TestRunLeases wants leases to spare the nodes work, and to cost no more
// tokens than lie in them.
func TestRunLeases(t *testing.T) {
	t.Parallel()
	s := small()
	s.Slow, s.Death = sim.Slow{}, sim.Death{}
	without := run(t, s)
	s.Leases = leases
	with := run(t, s)
	if with.Store.Charges > without.Store.Charges*3/4 || with.Store.Leased == 0 {
		t.Errorf("with leases Redis makes %d charges, want well under the %d without", with.Store.Charges, without.Store.Charges)
	}
	if with.Exact.Broken != 0 || with.Exact.Less > with.Exact.Ideal/50 {
		t.Errorf("Run = %+v, want no window broken and next to no token missed", with.Exact)
	}
}

// TestRunQueues has one node be a queue of which the mean wait is known: with
// many replicas that ask rarely, no batch has two requests, and they come at
// random (M/D/1: ρ/(2(1-ρ)) of a service).
func TestRunQueues(t *testing.T) {
	t.Parallel()
	for _, busy := range []float64{0.3, 0.7, 0.85} {
		const service = 200_000.0 // ns
		r := run(t, sim.Scenario{
			Name: "queue", Seed: 7, Time: 30 * time.Second, WarmUp: time.Second,
			Traffic: sim.Traffic{Envoys: 1, Rate: busy * 1e9 / service}, Tenants: sim.Tenants{Count: 10_000, Zipf: 1.0001},
			Replicas: 5000, Cores: 1, Nodes: 1, Deadline: time.Minute, Costs: sim.Costs{RoundTrip: service},
		})
		want := service / 1000 * (1 + busy/(2*(1-busy)))
		if math.Abs(r.Latency.Mean/want-1) > 0.05 {
			t.Errorf("a node that is busy for %v has a mean latency of %.1f µs, want %.1f", busy, r.Latency.Mean, want)
		}
		if math.Abs(r.Nodes[0]/busy-1) > 0.02 {
			t.Errorf("a node was busy for %v, want %v", r.Nodes[0], busy)
		}
	}
}

// TestRunGathers wants batches to grow with what is asked, and a batch to save
// the node work.
func TestRunGathers(t *testing.T) {
	t.Parallel()
	perBatch := func(rate float64) (float64, float64) {
		s := small()
		s.Slow, s.Death, s.DenialCache, s.Nodes, s.Cores = sim.Slow{}, sim.Death{}, false, 1, 16
		s.Traffic = sim.Traffic{Envoys: 20, Rate: rate}
		r := run(t, s)
		return float64(r.Store.Charges) / float64(r.Store.Batches), r.Nodes[0] / float64(r.Store.Charges)
	}
	few, dear := perBatch(500)
	many, cheap := perBatch(30_000)
	if few > 1.2 || many < 2*few || cheap > 0.9*dear {
		t.Errorf("a batch has %.2f charges at 500 a second and %.2f at 30,000, want 1 and more; each costs %.2g and %.2g, want less", few, many, dear, cheap)
	}
}

// TestRunAsks wants as many requests as the rate says, in bursts or not, and of
// each tenant its share.
func TestRunAsks(t *testing.T) {
	t.Parallel()
	s := small()
	s.Time, s.Traffic.Envoys = 5*time.Second, 200
	r := run(t, s)
	if want := s.Traffic.Rate * s.Time.Seconds(); math.Abs(float64(r.Requests.Arrived)/want-1) > 0.03 {
		t.Errorf("%d requests arrived, want about %.0f", r.Requests.Arrived, want)
	}
	share, want := float64(r.Keys[1].Arrived)/float64(r.Keys[0].Arrived), math.Pow(2, -s.Tenants.Zipf)
	if math.Abs(share-want) > 0.02 {
		t.Errorf("the second tenant asks %.3f times as often as the first, want %.3f", share, want)
	}
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*sim.Scenario){
		"Time":     func(s *sim.Scenario) { s.WarmUp = s.Time },
		"Rate":     func(s *sim.Scenario) { s.Traffic.Rate = 0 },
		"Burst":    func(s *sim.Scenario) { s.Traffic.Burst = 0 },
		"Zipf":     func(s *sim.Scenario) { s.Tenants.Zipf = 1 },
		"Replicas": func(s *sim.Scenario) { s.Cores = 0 },
		"Deadline": func(s *sim.Scenario) { s.Deadline = 0 },
	} {
		s := small()
		change(&s)
		if _, err := sim.Run(s, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Run = %v, want an error about %s", err, want)
		}
	}
}
