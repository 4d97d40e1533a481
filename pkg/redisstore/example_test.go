package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/redisstore"
)

// No server listens there, and the caller is told so by one word, that it can
// count and decide by.
func Example() {
	store, err := redisstore.New(redisstore.Options{URL: "redis://127.0.0.1:1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	limits, err := bucket.NewLimits(bucket.Limit{Tokens: 5, Per: 10 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	charges := []bucket.Charge{{Key: "caller", Limits: limits, Cost: 1}}
	results := make([]bucket.Result, len(charges))
	err = store.Take(context.Background(), charges, results)

	var failure *redisstore.Error
	if errors.As(err, &failure) {
		fmt.Println(failure.Op, failure.Cause())
	}
	// Output: take refused
}
