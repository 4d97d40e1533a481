package redisstore_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/redisstore"
	"github.com/sluice-mesh/sluice/test/servers"
)

// long says that tests may take their time.
var long = os.Getenv("SLUICE_TEST_LONG") != ""

// A keyed is a bucket of TestApart: what it is charged with, and what was
// admitted.
type keyed struct {
	charge   bucket.Charge
	admitted atomic.Int64
}

// TestApart makes 10,000 requests from 32 callers, each of two buckets that lie
// in different slots. While the clock stands still, every token that a denied
// request took must be back in the end, and no other: what is left is what the
// admitted ones left.
func TestApart(t *testing.T) {
	t.Parallel()
	c := servers.Cluster(t, servers.Redis, 3, servers.Options{})
	var now clock
	now.Store(1_700_000_000_000_000)
	store := openAt(t, c.URL(), &now)
	buckets := apart(t, func(i int) bucket.Limit { return bucket.Limit{Tokens: int64(40 + 10*i), Per: time.Hour} })
	for round := range 10 {
		denied := crowd(t, store, buckets, 1000)
		for _, b := range buckets {
			look := b.charge
			look.Cost = 0
			want := max(b.charge.Limits.At(0).Burst-b.admitted.Load(), 0)
			if got := take(t, store, look)[0].Remaining; got != want {
				t.Errorf("round %d: %s has %d left after %d were admitted, want %d", round, b.charge.Key, got, b.admitted.Load(), want)
			}
			b.admitted.Store(0)
		}
		if denied == 0 {
			t.Errorf("round %d: none of 1000 requests was denied, which tests nothing", round)
		}
		now.Add(int64(100 * 24 * time.Hour / time.Microsecond)) // all are full again
	}
}

// TestApartRefills is TestApart by the servers' clocks, with periods not much
// longer than a call takes: no bucket gives more than its burst and what came
// back.
func TestApartRefills(t *testing.T) {
	t.Parallel()
	c := servers.Cluster(t, servers.Redis, 3, servers.Options{})
	store := open(t, redisstore.Options{URL: c.URL(), Deadline: patience})
	buckets := apart(t, func(i int) bucket.Limit { return bucket.Limit{Tokens: int64(4 + i%3), Per: 20 * time.Millisecond} })
	n := int64(3000)
	if long {
		n = 30_000
	}
	begin := time.Now()
	denied := crowd(t, store, buckets, n)
	passed := time.Since(begin)
	for _, b := range buckets {
		l := b.charge.Limits.At(0)
		most, got := l.Burst+most(l, passed), b.admitted.Load()
		if got > most {
			t.Errorf("%s (%v) admitted %d in %v, want at most %d", b.charge.Key, l.Refill, got, passed, most)
		}
		t.Logf("%s (%v): %d of at most %d", b.charge.Key, l.Refill, got, most)
	}
	t.Logf("%d of %d requests denied in %v", denied, n, passed)
}

// most is what can come back within passed.
func most(l bucket.Limit, passed time.Duration) int64 {
	if l.Refill == bucket.Greedy {
		return int64(passed) / 1000 * l.Tokens / (int64(l.Per) / 1000)
	}
	periods := int64(passed / l.Per)
	if l.Refill == bucket.Aligned {
		periods++ // one ends somewhere in it
	}
	return periods * l.Tokens
}

// apart returns buckets in slots of all three primaries, of all modes.
func apart(t *testing.T, limit func(i int) bucket.Limit) []*keyed {
	t.Helper()
	var list []*keyed
	for i := range 12 {
		l := limit(i)
		l.Refill = bucket.Refill(i / 3)
		key := []string{tag0, tag1, tag2}[i%3] + fmt.Sprint(i)
		list = append(list, &keyed{charge: bucket.Charge{Key: key, Limits: limits(t, l), Cost: 1}})
	}
	return list
}

// crowd makes n requests from 32 callers, each of two random buckets that lie
// apart, and returns how many were denied. What was admitted is noted.
func crowd(t *testing.T, store *redisstore.Store, buckets []*keyed, n int64) int64 {
	t.Helper()
	var left, denied atomic.Int64
	left.Store(n)
	var wait sync.WaitGroup
	for range 32 {
		wait.Go(func() {
			for left.Add(-1) >= 0 {
				i := rand.IntN(len(buckets))
				a, b := buckets[i], buckets[(i+1+3*rand.IntN(4))%len(buckets)]
				x, y := a.charge, b.charge
				x.Cost, y.Cost = 1+rand.Int64N(3), 1+rand.Int64N(3)
				results := make([]bucket.Result, 2)
				if err := store.Take(t.Context(), []bucket.Charge{x, y}, results); err != nil {
					t.Errorf("Take = %v, want no error", err)
					return
				}
				if !results[0].Allowed || !results[1].Allowed {
					denied.Add(1)
					continue
				}
				a.admitted.Add(x.Cost)
				b.admitted.Add(y.Cost)
			}
		})
	}
	wait.Wait()
	return denied.Load()
}
