package main

import (
	"math"
	"strings"

	"github.com/sluice-mesh/sluice/bench/scale/sim"
)

// costs finds what each step costs, by which the turns are explained best: the
// least sum of squares of the relative errors.
func (m measured) costs() sim.Costs {
	node := m.nodeCosts()
	replica := m.replicaCosts()
	memory := 1000 * m.turn(memory, 64).ReplicaCPU
	return sim.Costs{
		Receive: memory / 2, Answer: memory / 2,
		Ask: replica[0], Send: replica[1], Batch: replica[2],
		RoundTrip: node[0], Script: node[1], Key: node[2], Write: node[3], Charge: node[4],
	}
}

// busy says that one replica and one node had enough to do. Where callers are
// few, or shared by several, processes fall asleep between two requests and
// wake up for the next, which those of a busy fleet do not pay for.
func (t turn) busy() bool {
	switch {
	case t.direct():
		return true
	case t.Name == remembered || t.Fleet == memory:
		return false
	}
	return t.Replicas == 1 && t.Callers >= 64 && (!strings.HasPrefix(t.Fleet, cluster) || t.Fleet == clusterOf(1))
}

// nodeCosts are of a read and write of the socket, a script, a key, a key that
// is written, and a charge, in ns.
func (m measured) nodeCosts() []float64 {
	var rows [][]float64
	var used []float64
	for _, t := range m.Turns {
		if !t.busy() {
			continue
		}
		keys, writes := t.distinct(), 0.0
		if t.Writes {
			writes = keys
		}
		rows = append(rows, []float64{t.Reads, t.Scripts, keys, writes, 1})
		used = append(used, 1000*t.RedisCPU)
	}
	return explain(rows, used)
}

// distinct is how many keys a script has, for each of its charges, that are
// drawn evenly.
func (t turn) distinct() float64 {
	charges, keys := 1/math.Max(t.Scripts, 1e-9), float64(t.Keys)
	return keys * (1 - math.Pow(1-1/keys, charges)) / charges
}

// replicaCosts are of a request that is asked of the store, beyond what it
// costs with the memory store; of a script, and of a batch, in ns.
func (m measured) replicaCosts() []float64 {
	var rows [][]float64
	var used []float64
	for _, t := range m.Turns {
		more := t.ReplicaCPU // there is nothing before the store, asked directly
		if !t.direct() {
			more -= m.turn(memory, t.Callers/t.Replicas).ReplicaCPU
		}
		if !t.busy() || more <= 0 {
			continue
		}
		rows = append(rows, []float64{1, t.Scripts, t.Reads})
		used = append(used, 1000*more)
	}
	return explain(rows, used)
}

// turn returns the one of a single replica of fleet with about so many callers.
func (m measured) turn(fleet string, callers int) turn {
	var nearest turn
	far := math.Inf(1)
	for _, t := range m.Turns {
		if off := math.Abs(math.Log(float64(t.Callers) / float64(callers))); t.Fleet == fleet && t.Replicas == 1 && t.Rule == "user" && off < far {
			nearest, far = t, off
		}
	}
	return nearest
}

// named returns the turn of a name.
func (m measured) named(name string) turn {
	for _, t := range m.Turns {
		if strings.EqualFold(t.Name, name) {
			return t
		}
	}
	return turn{}
}

// explain returns the x, none below 0, for which each row × x is as near as may
// be to used, in relation to that.
func explain(rows [][]float64, used []float64) []float64 {
	x := make([]float64, len(rows[0]))
	const times = 20_000
	for range times {
		for j := range x {
			over, under := 0.0, 0.0
			for i, row := range rows {
				weight := 1 / (used[i] * used[i])
				over += row[j] * unexplained(used[i], row, x, j) * weight
				under += row[j] * row[j] * weight
			}
			if under > 0 {
				x[j] = math.Max(over/under, 0)
			}
		}
	}
	return x
}

// unexplained is what of used the x but for x[j] leave to explain.
func unexplained(used float64, row, x []float64, j int) float64 {
	for k := range x {
		if k != j {
			used -= row[k] * x[k]
		}
	}
	return used
}
