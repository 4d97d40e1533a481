package standin_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/memstore"
	"github.com/sluice-mesh/sluice/pkg/standin"
)

// cause is an error of a shared store.
type cause string

func (c cause) Cause() string { return string(c) }
func (c cause) Error() string { return string(c) }

// shared is a store that is away while it has an error to answer with. A late
// one answers looks, and makes charges before it fails them. While foreign is
// set it has something else than a bucket under the key "odd".
type shared struct {
	*memstore.Store
	away    atomic.Pointer[cause]
	late    bool
	foreign atomic.Bool
}

func (s *shared) Take(ctx context.Context, charges []bucket.Charge, results []bucket.Result) error {
	away := s.away.Load()
	if away == nil && charges[0].Key == "odd" && s.foreign.Load() {
		results[0] = bucket.Result{Err: cause("foreign")}
		return nil
	}
	if away == nil || s.late {
		if err := s.Store.Take(ctx, charges, results); err != nil {
			return err
		}
	}
	looked := s.late && charges[0].Cost == 0
	if away == nil || looked {
		return nil
	}
	return *away
}

func (s *shared) fail(c cause) { s.away.Store(&c) }

// pair is a shared store and what stands in for it.
func pair(t *testing.T, maxKeys int) (*shared, *standin.Store) {
	t.Helper()
	local, main := memory(t), &shared{Store: memory(t)}
	s, err := standin.New(standin.Options{Local: local, Main: main, MaxKeys: maxKeys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return main, s
}

func memory(t *testing.T) *memstore.Store {
	t.Helper()
	m, err := memstore.New(memstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func limits(t *testing.T, list ...bucket.Limit) *bucket.Limits {
	t.Helper()
	ls, err := bucket.NewLimits(list...)
	if err != nil {
		t.Fatal(err)
	}
	return ls
}

// ask charges one bucket of s, or main as redisstore would: what it answers is
// seen.
func ask(t *testing.T, main *shared, s *standin.Store, key string, ls *bucket.Limits, cost int64) bucket.Result {
	t.Helper()
	charges, results := []bucket.Charge{{Key: key, Limits: ls, Cost: cost}}, make([]bucket.Result, 1)
	if main.Take(t.Context(), charges, results) == nil && results[0].Err == nil {
		s.Seen([]string{key}, []bucket.Bucket{main.Bucket(key, ls)})
		return results[0]
	}
	if err := s.Take(t.Context(), charges, results); err != nil {
		t.Fatalf("Take(%+v) = %v, want no error", charges, err)
	}
	return results[0]
}

func TestGoesOnAndSettles(t *testing.T) {
	t.Parallel()
	for _, refill := range []bucket.Refill{bucket.Greedy, bucket.Interval, bucket.Sliding} {
		synctest.Test(t, func(t *testing.T) {
			ls := limits(t, bucket.Limit{Tokens: 10, Per: time.Hour, Refill: refill})
			main, s := pair(t, 0)
			for i, step := range []struct {
				what    string
				cost    int64
				allowed bool
				left    int64
			}{
				{"", 4, true, 6},
				{"away", 1, true, 5}, // from the last balance seen
				{"", 3, true, 2},
				{"", 3, false, 2}, // which spends nothing
				{"back", 0, true, 2},
				{"", 2, true, 0},
				{"away", 1, false, 0},
				{"", -3, true, 3}, // given back to this replica, and to all once it can be told
				{"back", 0, true, 3},
			} {
				switch step.what {
				case "away":
					main.fail("refused")
				case "back":
					time.Sleep(5 * standin.Pause)
					main.away.Store(nil)
					time.Sleep(2 * standin.Pause)
				}
				got := ask(t, main, s, "k", ls, step.cost)
				if got.Allowed != step.allowed || got.Remaining != step.left {
					t.Errorf("%v, step %d: Take(%d) = %+v, want allowed %v, remaining %d", refill, i, step.cost, got, step.allowed, step.left)
				}
			}
			if s.Owed() != 0 || s.Settled() != 4 || s.Forgotten() != 0 {
				t.Errorf("%v: Owed, Settled, Forgotten = %d, %d, %d, want 0, 4, 0", refill, s.Owed(), s.Settled(), s.Forgotten())
			}
			_ = s.Close()
		})
	}
}

// What came back while the store was away is not charged to it.
func TestSettlesWhatIsStillSpent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ls := limits(t, bucket.Limit{Tokens: 60, Per: time.Minute})
		main, s := pair(t, 0)
		main.fail("open")
		for range 120 {
			if got := ask(t, main, s, "k", ls, 1); !got.Allowed {
				t.Fatalf("Take(1) = %+v, want allowed", got)
			}
			time.Sleep(time.Second)
		}
		ask(t, main, s, "k", ls, 30)
		main.away.Store(nil)
		time.Sleep(2 * standin.Pause)
		if got := ask(t, main, s, "k", ls, 0); got.Remaining < 30 || got.Remaining > 31 {
			t.Errorf("after 120 at the limit's pace and 30 at once, Take(0) = %+v, want 30 remaining, or a token more", got)
		}
		_ = s.Close()
	})
}

// A store that answers nothing is told nothing, and so nothing is forgotten.
func TestWaitsForAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ls := limits(t, bucket.Limit{Tokens: 10, Per: time.Hour})
		main, s := pair(t, 0)
		main.fail("timeout")
		ask(t, main, s, "k", ls, 4)
		time.Sleep(10 * standin.Pause)
		main.away.Store(nil)
		time.Sleep(3 * standin.Pause)
		if got := ask(t, main, s, "k", ls, 0); got.Remaining != 6 || s.Owed() != 0 || s.Forgotten() != 0 {
			t.Errorf("Take(0) = %+v, Owed, Forgotten = %d, %d, want remaining 6; 0, 0", got, s.Owed(), s.Forgotten())
		}
		_ = s.Close()
	})
}

// A call that may have been heard is not made again.
func TestTellsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ls := limits(t, bucket.Limit{Tokens: 10, Per: time.Hour})
		main, s := pair(t, 0)
		main.fail("refused")
		ask(t, main, s, "k", ls, 4)
		main.late = true
		main.fail("timeout")
		time.Sleep(3 * standin.Pause)
		main.away.Store(nil)
		time.Sleep(3 * standin.Pause)
		if got := ask(t, main, s, "k", ls, 0); got.Remaining != 6 || s.Owed() != 0 || s.Forgotten() != 4 {
			t.Errorf("Take(0) = %+v, Owed, Forgotten = %d, %d, want remaining 6; 0, 4", got, s.Owed(), s.Forgotten())
		}
		_ = s.Close()
	})
}

// Where the shared store has something else under a key, that bucket is settled
// once it is gone, and others meanwhile.
func TestSettlesWhatWasForeign(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{standin.Again, 0} { // 0 settles at Close
		synctest.Test(t, func(t *testing.T) {
			ls := limits(t, bucket.Limit{Tokens: 10, Per: time.Hour})
			main, s := pair(t, 0)
			main.foreign.Store(true)
			ask(t, main, s, "odd", ls, 4)
			main.fail("refused")
			for i := range 40 {
				ask(t, main, s, fmt.Sprint(i), ls, 1)
			}
			main.away.Store(nil)
			time.Sleep(3 * standin.Pause)
			if s.Owed() != 1 || s.Settled() != 40 || s.Forgotten() != 0 {
				t.Errorf("while it is there Owed, Settled, Forgotten = %d, %d, %d, want 1, 40, 0", s.Owed(), s.Settled(), s.Forgotten())
			}
			ask(t, main, s, "odd", ls, 2)
			main.foreign.Store(false)
			time.Sleep(wait)
			if wait == 0 {
				_ = s.Close()
			}
			if got := ask(t, main, s, "odd", ls, 0); got.Remaining != 4 || s.Owed() != 0 || s.Forgotten() != 0 {
				t.Errorf("after %v Take(0) = %+v, Owed, Forgotten = %d, %d, want remaining 4; 0, 0", wait, got, s.Owed(), s.Forgotten())
			}
			_ = s.Close()
		})
	}
}

// What is remembered is bounded, and what is not is counted.
func TestBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ls := limits(t, bucket.Limit{Tokens: 10, Per: time.Hour})
		main, s := pair(t, 8)
		main.fail("refused")
		for i := range 20 {
			ask(t, main, s, fmt.Sprint(i), ls, 2)
		}
		if s.Owed() != 8 || s.Forgotten() != 24 {
			t.Errorf("Owed, Forgotten = %d, %d, want 8, 24", s.Owed(), s.Forgotten())
		}
		main.away.Store(nil)
		_ = s.Close() // which settles at once
		if s.Owed() != 0 || s.Settled() != 16 || main.Len() != 8 {
			t.Errorf("after Close Owed, Settled = %d, %d of %d keys, want 0, 16 of 8", s.Owed(), s.Settled(), main.Len())
		}
	})
}

// What is owed is not gone through for as long as there is nobody to tell of it:
// callers, who note what they spend, would wait for that. No test runs beside
// this one, which counts what the process allocates.
func TestListsNothingWhileAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys, passes = 20_000, 50
		ls := limits(t, bucket.Limit{Tokens: 10, Per: time.Hour})
		main, s := pair(t, keys)
		main.fail("open")
		for i := range keys {
			ask(t, main, s, fmt.Sprint(i), ls, 1)
		}
		before := allocated()
		time.Sleep(passes * standin.Pause)
		if got, most := allocated()-before, uint64(keys*passes); got > most {
			t.Errorf("%d attempts to settle %d buckets while the store is away took %d bytes, want %d at most", passes, keys, got, most)
		}
		main.away.Store(nil)
		time.Sleep(2 * standin.Pause)
		if s.Owed() != 0 || s.Settled() != keys || s.Forgotten() != 0 {
			t.Errorf("then Owed, Settled, Forgotten = %d, %d, %d, want 0, %d, 0", s.Owed(), s.Settled(), s.Forgotten(), keys)
		}
		_ = s.Close()
	})
}

// allocated returns how many bytes were allocated so far.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// Of a request that is denied nothing is owed; a shadow charge that was made is.
func TestOwesWhatWasCharged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ls := limits(t, bucket.Limit{Tokens: 2, Per: time.Hour})
		main, s := pair(t, 0)
		main.fail("refused")
		for i, charges := range [][]bucket.Charge{
			{{Key: "a", Limits: ls, Cost: 1}, {Key: "b", Limits: ls, Cost: 3}},
			{{Key: "c", Limits: ls, Cost: 1}, {Key: "d", Limits: ls, Cost: 2, Shadow: true}, {Key: "e", Limits: ls, Cost: 3, Shadow: true}},
		} {
			if err := s.Take(t.Context(), charges, make([]bucket.Result, len(charges))); err != nil {
				t.Fatalf("call %d: Take() = %v, want no error", i, err)
			}
		}
		main.away.Store(nil)
		_ = s.Close()
		for key, spent := range map[string]int{"a": 0, "b": 0, "c": 1, "d": 2, "e": 0} {
			parts := main.Bucket(key, ls).Parts(ls)
			if spent > 0 != (len(parts) > 0) || spent > 0 && int(parts[0].Spent) != spent {
				t.Errorf("Bucket(%s) = %+v, want %d spent", key, parts, spent)
			}
		}
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	m := memory(t)
	for _, o := range []standin.Options{{}, {Local: m}, {Main: m}, {Local: m, Main: m, MaxKeys: -1}} {
		if s, err := standin.New(o); err == nil {
			_ = s.Close()
			t.Errorf("New(%+v) = nil error, want one", o)
		}
	}
}
