package redisstore_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/redisstore"
	"github.com/sluice-mesh/sluice/test/servers"
)

// TestShared charges one bucket through two Stores in turns. The process of one
// of them lives in another year: the server's clock decides.
func TestShared(t *testing.T) {
	t.Parallel()
	for _, kind := range servers.Kinds() {
		server := servers.Start(t, kind, servers.Options{Socket: true})
		here := open(t, redisstore.Options{URL: server.URL(), Deadline: patience})
		charge, allowed := one(t), 0
		count := func(t *testing.T, store *redisstore.Store) {
			if take(t, store, charge)[0].Allowed {
				allowed++
			}
		}
		for range 10 {
			count(t, here)
			synctest.Test(t, func(t *testing.T) {
				if time.Now().Year() != 2000 {
					t.Fatalf("the clock of the bubble is at %v, want the year 2000", time.Now())
				}
				count(t, open(t, redisstore.Options{URL: server.URL(), Deadline: patience}))
			})
		}
		if allowed != 10 {
			t.Errorf("%s: two Stores admitted %d of 20, want 10", kind.Name, allowed)
		}
	}
}

// TestTakeEach makes random charges of several requests in one call, and wants
// what each alone in turn would have been answered.
func TestTakeEach(t *testing.T) {
	t.Parallel()
	for _, kind := range servers.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			server := servers.Start(t, kind, servers.Options{Socket: true})
			var now clock
			now.Store(1_700_000_000_000_000)
			store := openAt(t, server.URL(), &now)
			random := rand.New(rand.NewPCG(3, 0))
			versions := versionsOfLimits(t)
			model := buckets{}
			for call := range 1500 {
				now.Add(random.Int64N(3_000_000) - 200_000)
				charges := randomGroups(random, versions)
				want, got := model.take(charges, now.time()), resultsFor(charges)
				if err := store.TakeEach(t.Context(), charges, got); err != nil {
					t.Fatalf("call %d: TakeEach = %v, want no error", call, err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("call %d: TakeEach (-bucket.Group +store):\n%s", call, diff)
				}
			}
			audit(t, client(t, server), "sl:", time.Minute)
		})
	}
}

// buckets are what a store has, by their keys.
type buckets map[string]*bucket.Bucket

// take makes the charges of each request, one after the other.
func (b buckets) take(charges [][]bucket.Charge, now time.Time) [][]bucket.Result {
	results := resultsFor(charges)
	for i := range charges {
		bucket.Group(charges[i], results[i], now, func(key string) *bucket.Bucket {
			if b[key] == nil {
				b[key] = new(bucket.Bucket)
			}
			return b[key]
		})
	}
	return results
}

func versionsOfLimits(t *testing.T) []*bucket.Limits {
	a := bucket.Limit{Name: "a", Tokens: 5, Per: 10 * time.Second}
	b := bucket.Limit{Tokens: 20, Per: time.Minute, Refill: bucket.Interval}
	c := bucket.Limit{Tokens: 1_000_003, Per: 24 * time.Hour}
	return []*bucket.Limits{limits(t, a), limits(t, b), limits(t, a, b), limits(t, b, a), limits(t, c), limits(t, c, bucket.Limit{Per: time.Second})}
}

// randomGroups makes up to 20 groups of up to 4 charges on few buckets, under
// limits that may differ within one call, and within one group. Half of them
// ask what an earlier one does.
func randomGroups(random *rand.Rand, versions []*bucket.Limits) [][]bucket.Charge {
	groups := make([][]bucket.Charge, 1+random.IntN(20))
	for i := range groups {
		if i > 0 && random.IntN(2) == 0 {
			groups[i] = slices.Clone(groups[random.IntN(i)])
			continue
		}
		groups[i] = make([]bucket.Charge, random.IntN(5))
		for j := range groups[i] {
			groups[i][j] = bucket.Charge{
				Key:    string(rune('a' + random.IntN(6))),
				Limits: versions[random.IntN(len(versions))],
				Cost:   random.Int64N(7) - 2,
				Shadow: random.IntN(4) == 0,
			}
		}
	}
	return groups
}

func resultsFor(charges [][]bucket.Charge) [][]bucket.Result {
	results := make([][]bucket.Result, len(charges))
	for i := range charges {
		results[i] = make([]bucket.Result, len(charges[i]))
	}
	return results
}
