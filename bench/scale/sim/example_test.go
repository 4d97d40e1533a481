package sim_test

import (
	"fmt"
	"time"

	"github.com/sluice-mesh/sluice/bench/scale/sim"
)

// One tenant asks for 2,000 requests a second through two replicas. The node
// takes a tenth of a millisecond for each batch.
func Example() {
	report, err := sim.Run(sim.Scenario{
		Seed: 1, Time: 10 * time.Second,
		Traffic:  sim.Traffic{Envoys: 4, Rate: 2000},
		Tenants:  sim.Tenants{Count: 1, Zipf: 1.1},
		Replicas: 2, Cores: 2, Nodes: 1, Deadline: 25 * time.Millisecond,
		Costs: sim.Costs{RoundTrip: 100_000},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Requests.Denied, report.Requests.Failed, report.Exact.Broken)
	fmt.Printf("the node is busy for %.0f %%\n", 100*report.Nodes[0])
	// Output:
	// 0 0 0
	// the node is busy for 20 %
}
