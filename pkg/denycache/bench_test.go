package denycache_test

import (
	"context"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/denycache"
	"github.com/sluice-mesh/sluice/pkg/memstore"
)

func BenchmarkHit(b *testing.B) {
	store, err := memstore.New(memstore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	c, err := denycache.New(denycache.Options{Store: store})
	if err != nil {
		b.Fatal(err)
	}
	ls, err := bucket.NewLimits(bucket.Limit{Tokens: 0, Per: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	charges := []bucket.Charge{{Key: "{k3v9x2ab}4:edge3:api00000", Limits: ls, Cost: 1}}
	results := make([]bucket.Result, 1)
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Take(b.Context(), charges, results); err != nil {
			b.Fatal(err)
		}
	}
}

// generous has room for everybody but one.
type generous struct{ denied string }

func (g generous) Take(_ context.Context, charges []bucket.Charge, results []bucket.Result) error {
	for i := range charges {
		results[i] = bucket.Result{Allowed: charges[i].Key != g.denied, RetryAfter: bucket.Never}
	}
	return nil
}

// Most requests are not denied, while somebody is.
func BenchmarkMiss(b *testing.B) {
	c, err := denycache.New(denycache.Options{Store: generous{"{k3v9x2ab}4:edge3:api00001"}})
	if err != nil {
		b.Fatal(err)
	}
	ls, err := bucket.NewLimits(bucket.Limit{Tokens: 0, Per: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	results := make([]bucket.Result, 1)
	if err := c.Take(b.Context(), []bucket.Charge{{Key: "{k3v9x2ab}4:edge3:api00001", Limits: ls, Cost: 1}}, results); err != nil {
		b.Fatal(err)
	}
	charges := []bucket.Charge{{Key: "{k3v9x2ab}4:edge3:api00000", Limits: ls, Cost: 1}}
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Take(b.Context(), charges, results); err != nil {
			b.Fatal(err)
		}
	}
}
