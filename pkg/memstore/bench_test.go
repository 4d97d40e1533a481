package memstore_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/memstore"
)

// TestTakeAllocates wants nothing allocated for buckets that are kept.
func TestTakeAllocates(t *testing.T) {
	s, c := bounded(t, 0)
	ls := mustLimits(t, bucket.Limit{Tokens: 100, Per: time.Minute}, bucket.Limit{Tokens: 1000, Per: time.Hour})
	charges := []bucket.Charge{{Key: "a", Limits: ls, Cost: 1}, {Key: "b", Limits: ls, Cost: 1}, {Key: "c", Limits: ls, Cost: 1, Shadow: true}}
	results := make([]bucket.Result, len(charges))
	now := epoch
	got := testing.AllocsPerRun(1000, func() {
		now = now.Add(10 * time.Millisecond)
		c.at.Store(&now)
		if err := s.Take(t.Context(), charges, results); err != nil {
			t.Fatal(err)
		}
	})
	if got > 0 {
		t.Errorf("Take(3 kept buckets) makes %v allocations, want 0", got)
	}
}

func BenchmarkTake(b *testing.B) {
	ls := mustLimits(b, bucket.Limit{Tokens: 100, Per: time.Minute})
	for _, keys := range []int{1, 100_000} {
		b.Run(fmt.Sprint(keys, " keys"), func(b *testing.B) {
			s, err := memstore.New(memstore.Options{})
			if err != nil {
				b.Fatal(err)
			}
			names := usualKeys(keys)
			b.ReportAllocs()
			var caller atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				charges := []bucket.Charge{{Limits: ls, Cost: 1}}
				results := make([]bucket.Result, 1)
				for i := int(caller.Add(1)) * 7919; pb.Next(); i++ {
					charges[0].Key = names[i%keys]
					if err := s.Take(b.Context(), charges, results); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

func usualKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint("{k3v9x2ab}4:edge3:api2:ip11:", i)
	}
	return keys
}

// BenchmarkPutEach is of keys that are there already, so many at a time. In
// between, caches are filled with other things, as a server that does more than
// this fills them: ns/key is PutEach without that, in the median.
func BenchmarkPutEach(b *testing.B) {
	ls := mustLimits(b, bucket.Limit{Tokens: 100, Per: time.Hour})
	spent, _ := bucket.Bucket{}.Take(ls, time.Now(), 1)
	others := make([]byte, 6<<20)
	for _, atOnce := range []int{1, 4, 11, 22} {
		b.Run(fmt.Sprintf("%d at once", atOnce), func(b *testing.B) {
			s, err := memstore.New(memstore.Options{})
			if err != nil {
				b.Fatal(err)
			}
			names := usualKeys(100_000)
			for _, name := range names {
				s.Put(name, spent)
			}
			keys, buckets := make([]string, atOnce), slices.Repeat([]bucket.Bucket{spent}, atOnce)
			var took []time.Duration
			for b.Loop() {
				for i := 0; i < len(others); i += 64 {
					others[i]++
				}
				for i := range keys {
					keys[i] = strings.Clone(names[rand.IntN(len(names))])
				}
				start := time.Now()
				s.PutEach(keys, buckets)
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/float64(atOnce), "ns/key")
		})
	}
}

// BenchmarkTakeAtTheBound is a new key that finds no room.
func BenchmarkTakeAtTheBound(b *testing.B) {
	s, _ := bounded(b, 10_000)
	ls := mustLimits(b, bucket.Limit{Tokens: 1, Per: time.Hour})
	charges := []bucket.Charge{{Limits: ls, Cost: 1}}
	results := make([]bucket.Result, 1)
	for i := range 10_000 {
		charges[0].Key = fmt.Sprint(i)
		if err := s.Take(b.Context(), charges, results); err != nil {
			b.Fatal(err)
		}
	}
	charges[0].Key = "new"
	for b.Loop() {
		if err := s.Take(b.Context(), charges, results); err != nil || results[0].Err == nil {
			b.Fatalf("Take(a new key at the bound) = %v, %+v, want an Err in its result", err, results[0])
		}
	}
}
