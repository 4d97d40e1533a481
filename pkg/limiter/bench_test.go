package limiter_test

import (
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/limiter"
)

func BenchmarkDecide(b *testing.B) {
	results := []bucket.Result{{Allowed: true, Remaining: 5, FullIn: time.Second}, {Allowed: true, Remaining: 2}}
	l := mustNew(b, limiter.Options{Store: &script{results: results}})
	ctx, m := b.Context(), rules("a", "~b")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			l.Decide(ctx, m)
		}
	})
}
