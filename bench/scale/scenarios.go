package main

import (
	"fmt"
	"io"
	"time"

	"github.com/sluice-mesh/sluice/bench/scale/sim"
	"github.com/sluice-mesh/sluice/bench/sheet"
)

// network is between two machines of one zone.
var network = sim.Network{Base: 80 * time.Microsecond, Jitter: 40 * time.Microsecond, Tail: 0.002, Long: 2 * time.Millisecond}

const (
	deadline = 25 * time.Millisecond // store-deadline's default
	plan     = 60                    // requests a minute
	cores    = 4                     // of a replica
)

// leases are "lease: {share: 1%, for: 100ms}" on the rule of large tenants.
var leases = sim.Leases{Share: 100, For: 100 * time.Millisecond, Least: 1000}

// fleet is the scenario that all runs have in common.
func (o options) fleet(p estimate) sim.Scenario {
	return sim.Scenario{
		Seed: o.seed, Time: o.time, WarmUp: o.time / 5,
		Traffic:  sim.Traffic{Envoys: o.envoys, Rate: o.rate, Bursty: 0.5, Burst: 200 * time.Millisecond},
		Tenants:  sim.Tenants{Count: o.tenants, Zipf: o.zipf, Plan: plan},
		Replicas: o.replicas, Cores: cores, Nodes: p.nodes, Costs: p.costs, Network: network, Deadline: deadline, DenialCache: true,
		Slow:  sim.Slow{Node: p.nodes / 2, From: o.time * 2 / 5, For: o.time / 10, Factor: 10},
		Death: sim.Death{Replica: o.replicas / 2, At: o.time * 7 / 10, Noticed: 200 * time.Millisecond},
	}
}

// A variant is the fleet with something switched on or off.
type variant struct {
	name   string
	change func(s *sim.Scenario)
}

var variants = []variant{
	{"denial cache off", func(s *sim.Scenario) { s.DenialCache = false }},
	{"denial cache", func(*sim.Scenario) {}},
	{"denial cache and leases", func(s *sim.Scenario) { s.Leases = leases }},
}

// runs simulates all variants.
func (o options) runs(p estimate, progress io.Writer) ([]sim.Report, error) {
	var reports []sim.Report
	for _, v := range variants {
		s := o.fleet(p)
		s.Name = v.name
		v.change(&s)
		r, err := sim.Run(s, progress)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.name, err)
		}
		reports = append(reports, r)
	}
	return reports, nil
}

// hotRates are what one key is asked for, in requests a second.
var hotRates = []float64{10_000, 30_000, 100_000, 300_000, 1_000_000}

// hot simulates one key that is asked for ever more, below its limit, with
// nothing going wrong: one node has all of it.
func (o options) hot(p estimate, progress io.Writer) ([]sim.Report, error) {
	var reports []sim.Report
	for _, rate := range hotRates {
		for _, with := range []sim.Leases{{}, leases} {
			s := o.fleet(p)
			s.Name, s.Slow, s.Death = fmt.Sprintf("one key, %s a second", sheet.Grouped(rate)), sim.Slow{}, sim.Death{}
			s.Time, s.WarmUp = o.time/5, o.time/25
			s.Nodes, s.Tenants.Count, s.Traffic.Rate, s.Leases = 1, 1, rate*o.rate/fullRate, with
			r, err := sim.Run(s, progress)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.Name, err)
			}
			reports = append(reports, r)
		}
	}
	return reports, nil
}
