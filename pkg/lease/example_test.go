package lease_test

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/lease"
	"github.com/sluice-mesh/sluice/pkg/memstore"
)

// Twenty charges ask the store eight times: the eighth brings a tenth of the
// burst with it. Close gives back what is left.
func Example() {
	memory, err := memstore.New(memstore.Options{}) // in the place of one that is far away
	if err != nil {
		fmt.Println(err)
		return
	}
	leases, err := lease.New(lease.Options{Store: memory})
	if err != nil {
		fmt.Println(err)
		return
	}
	limits, err := bucket.NewLimits(bucket.Limit{Tokens: 1000, Per: 24 * time.Hour})
	if err != nil {
		fmt.Println(err)
		return
	}
	charges := []bucket.Charge{{Key: "caller", Limits: limits.Leasing(1000, time.Minute), Cost: 1}}
	results := make([]bucket.Result, 1)
	for range 20 {
		if err := leases.Take(context.Background(), charges, results); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println("left:", results[0].Remaining)
	if err := leases.Close(); err != nil {
		fmt.Println(err)
	}
	f := leases.Figures()
	fmt.Println("leased:", f.Leased, "spent:", f.Spent, "given back:", f.Back)
	// Output:
	// left: 880
	// leased: 100 spent: 12 given back: 88
}
