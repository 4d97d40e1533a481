package main

import (
	"fmt"
	"math"

	"github.com/sluice-mesh/sluice/bench/scale/sim"
	"github.com/sluice-mesh/sluice/bench/sheet"
)

// An estimate is what a rate takes, by arithmetic from what was measured.
type estimate struct {
	costs  sim.Costs
	nodes  int
	cores  float64 // of replicas
	size   float64 // charges a batch
	charge float64 // ns of Redis CPU
	lines  []line
}

// A line is one step: what is found, by which formula, and what it comes to.
type line struct{ what, formula, value string }

const packet = 66 // bytes of Ethernet, IP and TCP around what a packet carries

// estimate goes from the costs of one request to those of o.rate.
func (m measured) estimate(o options) estimate {
	c := m.costs()
	e := estimate{costs: c, nodes: o.nodes}
	trip := 2*float64(network.Base+network.Jitter) + c.Batch/2 + c.RoundTrip
	size := 1.0
	charge := func() float64 { return c.RoundTrip/size + c.Script + c.Key + c.Write + c.Charge }
	found := o.nodes
	for range 20 { // the two hang on each other
		if o.nodes == 0 {
			found = int(math.Ceil(o.rate * charge() / 1e9 / o.use))
		}
		size = 1 + o.rate/float64(o.replicas)/float64(found)*trip/1e9
	}
	e.nodes, e.size, e.charge = found, size, charge()
	request := c.Receive + c.Answer + c.Ask + c.Send + c.Batch/size
	e.cores = o.rate * request / 1e9 / o.use
	e.lines = append(e.work(o, trip, request), m.bytes(o, size)...)
	return e
}

// work is what the processors do.
func (e estimate) work(o options, trip, request float64) []line {
	rate, share := sheet.Grouped(o.rate), 100*o.use
	return []line{
		{"a round trip to a node, T", fmt.Sprintf("2 × (%v + %v) + batch ÷ 2 + round trip", network.Base, network.Jitter), fmt.Sprintf("%.0f µs", trip/1000)},
		{"charges a batch, n", fmt.Sprintf("1 + %s ÷ %d replicas ÷ N × T", rate, o.replicas), fmt.Sprintf("%.2f", e.size)},
		{"Redis CPU a charge", "round trip ÷ n + script + key + write + charge", fmt.Sprintf("%.1f µs", e.charge/1000)},
		{"Redis nodes, N", fmt.Sprintf("%s × that ÷ %.0f %% of a core", rate, share), fmt.Sprintf("**%d**", e.nodes)},
		{"replica CPU a request", "receive + answer + ask + send + batch ÷ n", fmt.Sprintf("%.0f µs", request/1000)},
		{"replica cores", fmt.Sprintf("%s × that ÷ %.0f %%", rate, share), fmt.Sprintf("**%.0f**", e.cores)},
		{fmt.Sprintf("replicas of %d cores", cores), fmt.Sprintf("cores ÷ %d", cores), fmt.Sprintf("**%.0f**", math.Ceil(e.cores/cores))},
	}
}

// bytes is what goes over the wires, and what ten million buckets take.
func (m measured) bytes(o options, size float64) []line {
	const buckets, gib = 10e6, 1 << 30
	door, store, rate := m.turn(memory, 64), m.named(fmt.Sprintf("cluster, %d nodes", mostNodes)), sheet.Grouped(o.rate)
	gbit := func(bytes float64) string { return fmt.Sprintf("%.1f Gbit/s", o.rate*bytes*8/1e9) }
	one := func(bytes float64) string { return fmt.Sprintf("%s × (%.0f B + %d B a packet)", rate, bytes, packet) }
	batched := func(bytes float64) string { return fmt.Sprintf("%s × (%.0f B + %d B ÷ n)", rate, bytes, packet) }
	return []line{
		{"Envoys to replicas", one(door.ReplicaIn), gbit(door.ReplicaIn + packet)},
		{"replicas to Envoys", one(door.ReplicaOut), gbit(door.ReplicaOut + packet)},
		{"replicas to Redis", batched(store.RedisIn), gbit(store.RedisIn + packet/size)},
		{"Redis to replicas", batched(store.RedisOut), gbit(store.RedisOut + packet/size)},
		{
			"Redis memory, 10 M buckets", fmt.Sprintf("10 M × %.0f B × 2, as each node has a replica", m.Memory.Redis),
			fmt.Sprintf("%.1f GiB", buckets*m.Memory.Redis*2/gib),
		},
		{"the same in a memory store", fmt.Sprintf("10 M × %.0f B", m.Memory.Memstore), fmt.Sprintf("%.1f GiB", buckets*m.Memory.Memstore/gib)},
	}
}

// hotCharges is how many charges of one key a core of Redis makes in a second,
// with so many in each batch.
func hotCharges(c sim.Costs, size float64) float64 {
	return 1e9 / ((c.RoundTrip+c.Script+c.Key+c.Write)/size + c.Charge)
}
