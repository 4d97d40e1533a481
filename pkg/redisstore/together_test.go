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

// TestTogetherWithinATick has four requests ask the same of a bucket that is
// about full, in the tick of 1 ms in which it will be: the first finds it so.
func TestTogetherWithinATick(t *testing.T) {
	t.Parallel()
	var now clock
	store := openAt(t, servers.Start(t, servers.Redis, servers.Options{Socket: true}).URL(), &now)
	ls, model, full := inMilliseconds(t), buckets{}, 0
	for early := range int64(40) {
		now.Store(1_700_000_000_000_000)
		charge := []bucket.Charge{{Key: string(rune('a' + early)), Limits: ls, Cost: 5000}}
		first := take(t, store, charge...)[0]
		model.take([][]bucket.Charge{charge}, now.time())
		now.Add(first.FullIn.Microseconds() - 25*early)
		charges := slices.Repeat([][]bucket.Charge{charge}, 4)
		want, got := model.take(charges, now.time()), resultsFor(charges)
		if err := store.TakeEach(t.Context(), charges, got); err != nil {
			t.Fatalf("TakeEach = %v, want no error", err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d µs before it is full (-bucket.Group +store):\n%s", 25*early, diff)
		}
		if want[3][0].Allowed {
			full++
		}
	}
	if full < 2 || full == 40 {
		t.Errorf("at %d of 40 moments all four are allowed, want some but not all", full)
	}
}

// usualLimits are those of the keys of sameGroups.
func usualLimits(t *testing.T) []*bucket.Limits {
	return []*bucket.Limits{
		limits(t, bucket.Limit{Tokens: 30, Per: 10 * time.Second}),
		limits(t, bucket.Limit{Tokens: 40, Per: 7 * time.Second, Refill: bucket.Interval}),
		limits(t, bucket.Limit{Tokens: 25, Per: 5 * time.Second, Refill: bucket.Aligned}),
		inMilliseconds(t),
		limits(t, bucket.Limit{Tokens: 3, Per: time.Millisecond, Burst: 100}),
	}
}

// inMilliseconds are limits that are counted in ticks of 1 ms.
func inMilliseconds(t *testing.T) *bucket.Limits {
	t.Helper()
	ls := limits(t, bucket.Limit{Tokens: 4_294_967_291, Per: 240 * time.Hour, Burst: 20_000})
	if tick := ls.Terms(0).Tick; tick != 1000 {
		t.Fatalf("a tick is %d µs, want 1000", tick)
	}
	return ls
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
			ls := versions[key]
			cost := (1 + random.Int64N(4)) * max(ls.At(0).Burst/100, 1)
			groups[i] = append(groups[i], bucket.Charge{Key: string(rune('a' + key)), Limits: ls, Cost: cost})
		}
	}
	return groups
}
