package memstore_test

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/memstore"
)

func Example() {
	store, err := memstore.New(memstore.Options{MaxKeys: 100_000})
	if err != nil {
		fmt.Println(err)
		return
	}
	limits, err := bucket.NewLimits(bucket.Limit{Tokens: 2, Per: time.Hour, Refill: bucket.Interval})
	if err != nil {
		fmt.Println(err)
		return
	}
	charges := []bucket.Charge{{Key: "alice", Limits: limits, Cost: 1}}
	results := make([]bucket.Result, len(charges))
	for range 3 {
		if err := store.Take(context.Background(), charges, results); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(results[0].Allowed, results[0].Remaining)
	}
	// Output:
	// true 1
	// true 0
	// false 0
}
