package breaker_test

import (
	"context"
	"testing"

	"github.com/sluice-mesh/sluice/pkg/breaker"
	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// A steady store answers at once, always the same.
type steady struct{ err error }

func (s steady) Take(context.Context, []bucket.Charge, []bucket.Result) error { return s.err }

func BenchmarkTake(b *testing.B) {
	charges, results := []bucket.Charge{{Key: "k", Cost: 1}}, make([]bucket.Result, 1)
	for name, err := range map[string]error{"closed": nil, "open": failing("timeout")} {
		br := mustNew(b, breaker.Options{Store: steady{err}})
		for range 20 {
			_ = br.Take(b.Context(), charges, results)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					_ = br.Take(context.Background(), charges, results)
				}
			})
		})
	}
}

func TestTakeAllocates(t *testing.T) {
	charges, results := []bucket.Charge{{Key: "k", Cost: 1}}, make([]bucket.Result, 1)
	for name, err := range map[string]error{"closed": nil, "open": failing("timeout")} {
		b := mustNew(t, breaker.Options{Store: steady{err}})
		for range 20 {
			_ = b.Take(t.Context(), charges, results)
		}
		if got := testing.AllocsPerRun(1000, func() { _ = b.Take(context.Background(), charges, results) }); got != 0 {
			t.Errorf("Take while %s allocates %v times, want 0", name, got)
		}
	}
}
