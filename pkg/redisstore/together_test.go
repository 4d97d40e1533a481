package redisstore_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/test/servers"
)

// TestTogether makes the charges of requests of which many ask the same, by the
// short way alone, and wants what each alone in turn would have been answered.
func TestTogether(t *testing.T) {
	t.Parallel()
	for _, kind := range servers.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			server := servers.Start(t, kind, servers.Options{Socket: true})
			askAlike(t, server.URL())
		})
	}
}

func askAlike(t *testing.T, url string) {
	t.Helper()
	var now clock
	now.Store(1_700_000_000_000_000)
	store := openAt(t, url, &now)
	random, versions := rand.New(rand.NewPCG(5, 0)), usualLimits(t)
	model, joined, admitted := buckets{}, 0, 0
	for call := range 1500 {
		now.Add(random.Int64N(2_000_000))
		charges := sameGroups(random, versions)
		want, got := model.take(charges, now.time()), resultsFor(charges)
		usual, some, err := store.TakeEachUsual(t.Context(), charges, got)
		if !usual || err != nil {
			t.Fatalf("call %d: TakeEachUsual = %v, %v, want all to go the short way", call, usual, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("call %d: TakeEachUsual (-bucket.Group +store):\n%s", call, diff)
		}
		joined += some
		for _, results := range got {
			if results[0].Allowed {
				admitted++
			}
		}
	}
	if joined < 5000 || admitted < 3000 {
		t.Errorf("%d requests were made together with others, and %d were allowed: want thousands of both", joined, admitted)
	}
}

// usualLimits are those of the keys of sameGroups.
func usualLimits(t *testing.T) []*bucket.Limits {
	return []*bucket.Limits{
		limits(t, bucket.Limit{Tokens: 30, Per: 10 * time.Second}),
		limits(t, bucket.Limit{Tokens: 40, Per: 7 * time.Second, Refill: bucket.Interval}),
		limits(t, bucket.Limit{Tokens: 25, Per: 5 * time.Second, Refill: bucket.Aligned}),
		limits(t, bucket.Limit{Tokens: 1_000_003, Per: 24 * time.Hour, Burst: 50}), // in ticks of 1 ms
		limits(t, bucket.Limit{Tokens: 3, Per: time.Millisecond, Burst: 100}),
	}
}

// sameGroups makes up to 30 groups of up to 3 buckets, each under its own
// limits; most ask what one of the last few does.
func sameGroups(random *rand.Rand, versions []*bucket.Limits) [][]bucket.Charge {
	groups := make([][]bucket.Charge, 1+random.IntN(30))
	for i := range groups {
		if i > 0 && random.IntN(4) > 0 {
			groups[i] = slices.Clone(groups[max(0, i-1-random.IntN(3))])
			continue
		}
		for _, key := range random.Perm(len(versions))[:1+random.IntN(3)] {
			groups[i] = append(groups[i], bucket.Charge{Key: string(rune('a' + key)), Limits: versions[key], Cost: 1 + random.Int64N(4)})
		}
	}
	return groups
}
