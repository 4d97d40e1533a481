package denycache_test

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/denycache"
	"github.com/sluice-mesh/sluice/pkg/memstore"
)

// The store is asked for the token that there is and for the one that there is
// not, and then no more.
func Example() {
	store, err := memstore.New(memstore.Options{}) // in the place of one that is far away
	if err != nil {
		fmt.Println(err)
		return
	}
	cache, err := denycache.New(denycache.Options{Store: store})
	if err != nil {
		fmt.Println(err)
		return
	}
	limits, err := bucket.NewLimits(bucket.Limit{Tokens: 1, Per: time.Hour})
	if err != nil {
		fmt.Println(err)
		return
	}
	charges := []bucket.Charge{{Key: "caller", Limits: limits, Cost: 1}}
	results := make([]bucket.Result, 1)
	for range 4 {
		if err := cache.Take(context.Background(), charges, results); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(results[0].Allowed, cache.Remembered())
	}
	// Output:
	// true 0
	// false 0
	// false 1
	// false 2
}
