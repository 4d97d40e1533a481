package bucket_test

import (
	"fmt"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// Five tokens in ten seconds, all used at once.
func Example() {
	limits, err := bucket.NewLimits(bucket.Limit{Tokens: 5, Per: 10 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	var b bucket.Bucket // full
	start := time.Now()

	b, r := b.Take(limits, start, 5)
	fmt.Println(r.Allowed, r.Remaining)

	_, r = b.Take(limits, start.Add(1500*time.Millisecond), 1)
	fmt.Println(r.Allowed, r.RetryAfter)

	_, r = b.Take(limits, start.Add(2*time.Second), 1)
	fmt.Println(r.Allowed, r.Remaining)
	// Output:
	// true 0
	// false 500ms
	// true 0
}

// One request that charges two buckets, of which one lacks: neither is
// charged.
func ExampleGroup() {
	limits, err := bucket.NewLimits(bucket.Limit{Tokens: 5, Per: 10 * time.Second, Refill: bucket.Interval})
	if err != nil {
		fmt.Println(err)
		return
	}
	buckets := map[string]*bucket.Bucket{"user": {}, "address": {}}
	charges := []bucket.Charge{
		{Key: "user", Limits: limits, Cost: 1},
		{Key: "address", Limits: limits, Cost: 6},
	}
	results := make([]bucket.Result, len(charges))
	passed := bucket.Group(charges, results, time.Now(), func(key string) *bucket.Bucket { return buckets[key] })
	fmt.Println(passed, results[0].Allowed, results[1].Allowed, buckets["user"].Full())
	// Output:
	// false true false true
}
