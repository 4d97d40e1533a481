package bucket_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

func benchLimits(tb testing.TB, n int) *bucket.Limits {
	list := []bucket.Limit{
		{Tokens: 100, Per: time.Minute}, {Tokens: 1000, Per: time.Hour, Refill: bucket.Interval}, {Tokens: 7, Per: time.Second, Burst: 70},
	}
	return mustLimits(tb, list[:n]...)
}

func BenchmarkTake(b *testing.B) {
	for n, name := range map[int]string{1: "one limit", 2: "two limits", 3: "three limits"} {
		ls := benchLimits(b, n)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var kept bucket.Bucket
			now := epoch
			for b.Loop() {
				now = now.Add(333 * ms)
				kept, _ = kept.Take(ls, now, 1)
			}
		})
	}
}

func BenchmarkGroup(b *testing.B) {
	ls := benchLimits(b, 2)
	charges := []bucket.Charge{{Key: "user", Limits: ls, Cost: 1}, {Key: "address", Limits: ls, Cost: 1}}
	results := make([]bucket.Result, len(charges))
	buckets := [2]bucket.Bucket{}
	at := func(key string) *bucket.Bucket { return &buckets[len(key)%2] }
	now := epoch
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(333 * ms)
		bucket.Group(charges, results, now, at)
	}
}

// BenchmarkGroupOfMany takes as long for each charge whatever their number.
func BenchmarkGroupOfMany(b *testing.B) {
	ls := benchLimits(b, 1)
	for _, n := range []int{2, 16, 17, 100, 1000, 10_000} {
		b.Run(fmt.Sprint(n, " charges"), func(b *testing.B) {
			charges, results, buckets := make([]bucket.Charge, n), make([]bucket.Result, n), kept{}
			for i := range charges {
				charges[i] = bucket.Charge{Key: fmt.Sprint(i), Limits: ls, Cost: 1}
			}
			for b.Loop() {
				bucket.Group(charges, results, epoch, buckets.at)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/charge")
		})
	}
}

// TestTakeAllocates wants a bucket of up to two limits charged without a
// single allocation.
func TestTakeAllocates(t *testing.T) {
	for n, want := range map[int]float64{1: 0, 2: 0, 3: 2} {
		ls, kept, now := benchLimits(t, n), bucket.Bucket{}, epoch
		got := testing.AllocsPerRun(1000, func() {
			now = now.Add(333 * ms)
			kept, _ = kept.Take(ls, now, 1)
		})
		if got > want {
			t.Errorf("Take(%d limits) makes %v allocations, want at most %v", n, got, want)
		}
	}
}
