package denycache_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/denycache"
	"github.com/sluice-mesh/sluice/pkg/memstore"
)

// An away is a store that is some time away, and counts its calls.
type away struct {
	denycache.Store
	there, back time.Duration
	calls       int
	err         error
}

func (a *away) Take(ctx context.Context, charges []bucket.Charge, results []bucket.Result) error {
	a.calls++
	if a.err != nil {
		return a.err
	}
	time.Sleep(a.there)
	err := a.Store.Take(ctx, charges, results)
	time.Sleep(a.back)
	return err
}

func memory(t *testing.T) *memstore.Store {
	t.Helper()
	s, err := memstore.New(memstore.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func cache(t *testing.T, o denycache.Options) *denycache.Cache {
	t.Helper()
	c, err := denycache.New(o)
	if err != nil {
		t.Fatalf("New(%+v) = %v, want no error", o, err)
	}
	return c
}

func limits(t *testing.T, list ...bucket.Limit) *bucket.Limits {
	t.Helper()
	ls, err := bucket.NewLimits(list...)
	if err != nil {
		t.Fatalf("NewLimits(%+v) = %v, want no error", list, err)
	}
	return ls
}

func take(t *testing.T, s denycache.Store, charges ...bucket.Charge) []bucket.Result {
	t.Helper()
	results := make([]bucket.Result, len(charges))
	if err := s.Take(t.Context(), charges, results); err != nil {
		t.Fatalf("Take(%+v) = %v, want no error", charges, err)
	}
	return results
}

// TestTake asks again and again for a bucket of 5 tokens in 10 s, all of which
// are used at 0, of a store that is 3 ms and back 5 ms away.
func TestTake(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, test := range []struct {
		refill bucket.Refill
		steps  []step
	}{
		{bucket.Greedy, []step{ // the next token is there at 2003 ms
			{0, false, 1992 * ms, 1}, // asked at 8 ms, decided at 11, answered at 16
			{0, false, 1992 * ms, 0},
			{250 * ms, false, 1742 * ms, 0},
			{700 * ms, false, 1042 * ms, 0},
			{42*ms - 1, false, 1000*ms + time.Microsecond, 0},
			{1, false, 992 * ms, 1}, // a second after it was asked
			{982 * ms, false, 10 * ms, 0},
			{2 * ms, true, 0, 1}, // asked at 2000 ms
		}},
		{bucket.Interval, []step{ // the next are there at 10,003 ms
			{9000 * ms, false, 992 * ms, 1},
			{979 * ms, false, 13 * ms, 0},
			{5 * ms, true, 0, 1},
		}},
	} {
		t.Run(test.refill.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { play(t, test.refill, test.steps) })
		})
	}
}

// A step is a request after a pause.
type step struct {
	pause   time.Duration
	allowed bool
	retry   time.Duration
	calls   int
}

func play(t *testing.T, refill bucket.Refill, steps []step) {
	t.Helper()
	store := &away{Store: memory(t), there: 3 * time.Millisecond, back: 5 * time.Millisecond}
	c := cache(t, denycache.Options{Store: store})
	charge := bucket.Charge{Key: "k", Limits: limits(t, bucket.Limit{Tokens: 5, Per: 10 * time.Second, Refill: refill}), Cost: 5}
	take(t, c, charge)
	charge.Cost = 1
	for i, s := range steps {
		time.Sleep(s.pause)
		calls := store.calls
		got := take(t, c, charge)[0]
		if got.Allowed != s.allowed || got.RetryAfter != s.retry || store.calls-calls != s.calls {
			t.Errorf("step %d: Take = %+v after %d calls of the store, want allowed %v, retry after %v, %d calls", i, got, store.calls-calls, s.allowed, s.retry, s.calls)
		}
	}
}

// TestLaws makes random requests of a Cache before a store and of the same
// store without one: for one bucket the answers are the same, for several the
// decisions.
func TestLaws(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			store, plain := &away{Store: memory(t)}, memory(t)
			c := cache(t, denycache.Options{Store: store, MaxBytes: []int64{0, 1 << 16}[seed%2]})
			sets := sets(t)
			for i := range 15_000 {
				time.Sleep(time.Duration(random.Int64N(random.Int64N(80_000)+1)) * time.Microsecond)
				charges := requestOf(random, sets)
				want, got := take(t, plain, charges...), take(t, c, charges...)
				got[0].Remembered = false // which is all that may differ
				if len(charges) > 1 {
					if passes(charges, want) != passes(charges, got) {
						t.Fatalf("seed %d, request %d: Take(%+v) = %+v, without a cache %+v", seed, i, charges, got, want)
					}
					continue
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("seed %d, request %d: Take(%+v) (-without a cache +with):\n%s", seed, i, charges, diff)
				}
			}
			if c.Remembered() < 1000 {
				t.Errorf("seed %d: %d of 15000 requests were answered by the cache, which tests nothing", seed, c.Remembered())
			}
			t.Logf("seed %d: %d hits, %d calls", seed, c.Remembered(), store.calls)
		})
	}
}

func sets(t *testing.T) []*bucket.Limits {
	t.Helper()
	debt, err := bucket.NewDebtLimits(20, bucket.Limit{Tokens: 3, Per: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return []*bucket.Limits{
		limits(t, bucket.Limit{Tokens: 3, Per: time.Second}),
		limits(t, bucket.Limit{Tokens: 5, Per: 7 * time.Second, Refill: bucket.Interval}),
		limits(t, bucket.Limit{Tokens: 4, Per: 3 * time.Second, Refill: bucket.Aligned}),
		limits(t, bucket.Limit{Tokens: 4, Per: 3 * time.Second, Refill: bucket.Sliding}),
		limits(t, bucket.Limit{Tokens: 1_000_003, Per: 240 * time.Hour, Burst: 30}),
		limits(t, bucket.Limit{Tokens: 2, Per: time.Second}, bucket.Limit{Tokens: 20, Per: time.Minute, Burst: 5}),
		limits(t, bucket.Limit{Tokens: 0, Per: time.Second}),
		debt,
	}
}

func requestOf(random *rand.Rand, sets []*bucket.Limits) []bucket.Charge {
	charges := make([]bucket.Charge, 1+random.IntN(2)*random.IntN(3))
	for i := range charges {
		n := random.IntN(len(sets))
		cost := int64(1)
		switch random.IntN(200) {
		case 0:
			cost = -1
		case 1, 2:
			cost = 0
		case 3, 4, 5, 6, 7, 8, 9, 10, 11, 12:
			cost = 1 + random.Int64N(7)
		}
		charges[i] = bucket.Charge{Key: fmt.Sprint(n, random.IntN(2)), Limits: sets[n], Cost: cost, Shadow: random.IntN(8) == 0}
	}
	return charges
}

func passes(charges []bucket.Charge, results []bucket.Result) bool {
	for i := range charges {
		if !charges[i].Shadow && !results[i].Allowed {
			return false
		}
	}
	return true
}

// TestPassesBy has what is never remembered.
func TestPassesBy(t *testing.T) {
	t.Parallel()
	debt, err := bucket.NewDebtLimits(20, bucket.Limit{Tokens: 1, Per: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	hourly := limits(t, bucket.Limit{Tokens: 1, Per: time.Hour})
	empty := bucket.Charge{Key: "k", Limits: hourly, Cost: 1}
	for name, charges := range map[string][]bucket.Charge{
		"a look":              {{Key: "k", Limits: hourly}},
		"a look among others": {empty, {Key: "other", Limits: hourly}},
		"debt":                {{Key: "d", Limits: debt, Cost: 1}},
		"debt among others":   {empty, {Key: "d", Limits: debt, Cost: 1}},
		"shadow alone":        {{Key: "k", Limits: hourly, Cost: 1, Shadow: true}},
		"a lease":             {{Key: "k", Limits: hourly, Cost: 1, Lease: &bucket.Lease{}}},
		"nothing":             nil,
	} {
		store := &away{Store: memory(t)}
		c := cache(t, denycache.Options{Store: store})
		take(t, c, empty)
		for range 3 {
			take(t, c, charges...)
		}
		if store.calls != 4 || c.Remembered() != 0 {
			t.Errorf("%s: 4 requests came to the store %d times, %d were answered by the cache; want 4, 0", name, store.calls, c.Remembered())
		}
	}
}

// TestForgets has what makes a denial be forgotten: the token is there at once.
func TestForgets(t *testing.T) {
	t.Parallel()
	hourly := limits(t, bucket.Limit{Tokens: 1, Per: time.Hour})
	raised := limits(t, bucket.Limit{Tokens: 2, Per: time.Hour})
	charge := bucket.Charge{Key: "k", Limits: hourly, Cost: 1}
	for name, do := range map[string]func(c *denycache.Cache, store *memstore.Store){
		"a refund": func(c *denycache.Cache, _ *memstore.Store) {
			take(t, c, bucket.Charge{Key: "k", Limits: hourly, Cost: -1})
		},
		"a raised limit": func(*denycache.Cache, *memstore.Store) { charge.Limits = raised },
		"Clear": func(c *denycache.Cache, store *memstore.Store) {
			take(t, store, bucket.Charge{Key: "k", Limits: hourly, Cost: -1})
			c.Clear()
		},
	} {
		store := memory(t)
		c := cache(t, denycache.Options{Store: store})
		charge.Limits = hourly
		take(t, c, charge)
		for range 2 {
			if take(t, c, charge)[0].Allowed {
				t.Errorf("%s: Take(empty bucket) is allowed, want a denial", name)
			}
		}
		do(c, store)
		if !take(t, c, charge)[0].Allowed || c.Remembered() != 1 {
			t.Errorf("%s: Take after it is denied with %d hits, want a token and 1 hit", name, c.Remembered())
		}
	}
}

// TestClearMeanwhile forgets what is just being asked.
func TestClearMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &away{Store: memory(t), back: time.Second / 2}
		c := cache(t, denycache.Options{Store: store})
		charge := bucket.Charge{Key: "k", Limits: limits(t, bucket.Limit{Tokens: 1, Per: time.Hour}), Cost: 1}
		take(t, c, charge)
		time.AfterFunc(time.Millisecond, c.Clear)
		take(t, c, charge)
		if c.Len() != 0 {
			t.Errorf("%d denials are kept that were asked for before Clear, want 0", c.Len())
		}
	})
}

// TestBounded denies many: they take no more room than is given.
func TestBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const most = 1 << 20
		c := cache(t, denycache.Options{Store: memory(t), MaxBytes: most})
		closed := limits(t, bucket.Limit{Tokens: 0, Per: time.Hour})
		for i := range 50_000 {
			take(t, c, bucket.Charge{Key: fmt.Sprint("key", i), Limits: closed, Cost: 1})
		}
		if n := c.Len(); n > most/200 || n < most/1000 {
			t.Errorf("%d denials are kept in %d bytes, want from %d to %d", n, most, most/1000, most/200)
		}
		time.Sleep(10 * time.Second)
		for range 2 {
			for i := range 1000 {
				take(t, c, bucket.Charge{Key: fmt.Sprint("new", i), Limits: closed, Cost: 1})
			}
			time.Sleep(time.Second)
		}
		if n := c.Len(); n > 2000 {
			t.Errorf("%d denials are kept of 1000 in each of the last two seconds, want the others forgotten", n)
		}
	})
}

func TestErrors(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	store := &away{err: gone}
	c := cache(t, denycache.Options{Store: store})
	charge := bucket.Charge{Key: "k", Limits: limits(t, bucket.Limit{Tokens: 1, Per: time.Hour}), Cost: 1}
	for range 2 {
		if err := c.Take(t.Context(), []bucket.Charge{charge}, make([]bucket.Result, 1)); !errors.Is(err, gone) {
			t.Errorf("Take(store that fails) = %v, want its error", err)
		}
	}
	if _, err := denycache.New(denycache.Options{}); err == nil {
		t.Error("New(no store) = no error, want one")
	}
	if _, err := denycache.New(denycache.Options{Store: store, MaxBytes: -1}); err == nil {
		t.Error("New(MaxBytes -1) = no error, want one")
	}
}

// TestCrowd has many ask at once.
func TestCrowd(t *testing.T) {
	t.Parallel()
	c := cache(t, denycache.Options{Store: memory(t), MaxBytes: 1 << 16})
	ls := limits(t, bucket.Limit{Tokens: 5, Per: time.Hour})
	var wait sync.WaitGroup
	for caller := range 8 {
		wait.Go(func() {
			results := make([]bucket.Result, 1)
			for i := range 2000 {
				if i%500 == 0 {
					c.Clear()
				}
				charge := bucket.Charge{Key: fmt.Sprint(i * caller % 100), Limits: ls, Cost: 1}
				if err := c.Take(t.Context(), []bucket.Charge{charge}, results); err != nil {
					t.Errorf("Take = %v, want no error", err)
				}
			}
		})
	}
	wait.Wait()
}
