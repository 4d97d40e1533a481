package memstore_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/memstore"
)

var epoch = time.Unix(1_700_000_000, 0)

func mustLimits(tb testing.TB, list ...bucket.Limit) *bucket.Limits {
	tb.Helper()
	ls, err := bucket.NewLimits(list...)
	if err != nil {
		tb.Fatalf("NewLimits(%+v) = %v, want no error", list, err)
	}
	return ls
}

// bounded is a store of so many keys whose clock stands at epoch.
func bounded(tb testing.TB, keys int) (*memstore.Store, *clock) {
	tb.Helper()
	c := &clock{}
	c.set(epoch)
	s, err := memstore.New(memstore.Options{MaxKeys: keys, OnFull: memstore.Fail, Now: c.now})
	if err != nil {
		tb.Fatalf("New(MaxKeys %d) = %v, want no error", keys, err)
	}
	return s, c
}

func take(t *testing.T, s *memstore.Store, charges ...bucket.Charge) ([]bucket.Result, error) {
	t.Helper()
	results := make([]bucket.Result, len(charges))
	err := s.Take(t.Context(), charges, results)
	return results, err
}

// wantFull wants the last of charges to find no room, and the others to be
// answered.
func wantFull(t *testing.T, s *memstore.Store, charges ...bucket.Charge) {
	t.Helper()
	results, err := take(t, s, charges...)
	if err != nil {
		t.Errorf("Take(%v) at the bound = %v, want no error", charges, err)
	}
	last := len(charges) - 1
	for i, r := range results {
		var caused interface{ Cause() string }
		if full := errors.As(r.Err, &caused) && caused.Cause() == "full"; full != (i == last) {
			t.Errorf("Take(%v) at the bound: result %d has Err %v, want cause full in the last alone", charges, i, r.Err)
		}
	}
}

func wantTake(t *testing.T, s *memstore.Store, allowed bool, charges ...bucket.Charge) {
	t.Helper()
	results, err := take(t, s, charges...)
	if err != nil {
		t.Errorf("Take(%v) = %v, want no error", charges, err)
		return
	}
	for i, r := range results {
		if r.Allowed != allowed || r.Err != nil {
			t.Errorf("Take(%v)[%d] = %+v, want allowed %v", charges, i, r, allowed)
		}
	}
}

func TestBoundForgetsNoOne(t *testing.T) {
	t.Parallel()
	const bound = 100
	s, c := bounded(t, bound)
	minute := mustLimits(t, bucket.Limit{Tokens: 2, Per: time.Minute})
	charge := func(i int) bucket.Charge {
		return bucket.Charge{Key: fmt.Sprint("in use ", i), Limits: minute, Cost: 2}
	}
	for i := range bound {
		wantTake(t, s, true, charge(i))
	}
	c.set(epoch.Add(time.Minute - time.Microsecond))
	for i := range 3 * bound {
		wantFull(t, s, charge(bound+i))
	}
	for i := range bound {
		wantTake(t, s, false, charge(i))
	}
	if got := s.Len(); got != bound {
		t.Errorf("Len() at the bound = %d, want %d", got, bound)
	}
	c.set(epoch.Add(time.Minute))
	for i := range bound {
		wantTake(t, s, true, charge(bound+i)) // wherever it lies, it finds room
	}
	wantFull(t, s, charge(0))
}

func TestBoundAnswersWhatItCan(t *testing.T) {
	t.Parallel()
	s, _ := bounded(t, 2)
	ls := mustLimits(t, bucket.Limit{Tokens: 2, Per: time.Minute})
	old := bucket.Charge{Key: "old", Limits: ls, Cost: 1}
	fresh := bucket.Charge{Key: "new", Limits: ls, Cost: 1}
	wantTake(t, s, true, old, bucket.Charge{Key: "other", Limits: ls, Cost: 2})

	wantFull(t, s, fresh)
	wantFull(t, s, old, fresh) // and old is charged:
	wantTake(t, s, false, old)
	look, back, tooMuch, shadow := fresh, fresh, fresh, fresh
	look.Cost, back.Cost, tooMuch.Cost = 0, -1, 3
	shadow.Shadow = true
	wantTake(t, s, true, look)
	wantTake(t, s, true, back)
	wantTake(t, s, false, tooMuch)
	results, err := take(t, s, old, fresh, shadow)
	if err != nil || results[0].Allowed || !results[1].Allowed {
		t.Errorf("Take(one that lacks, two new) at the bound = %+v, %v, want it denied", results, err)
	}
	back.Key = "old"
	back.Cost = -2
	wantTake(t, s, true, back) // full again: dropped at once
	wantTake(t, s, true, fresh)
}

func TestLen(t *testing.T) {
	t.Parallel()
	s, c := bounded(t, 0)
	ls := mustLimits(t, bucket.Limit{Tokens: 1, Per: time.Second})
	for i := range 1000 {
		wantTake(t, s, true, bucket.Charge{Key: fmt.Sprint(i), Limits: ls, Cost: 1})
	}
	if got := s.Len(); got != 1000 {
		t.Errorf("Len() = %d, want 1000", got)
	}
	c.set(epoch.Add(time.Second))
	if got := s.Len(); got != 0 {
		t.Errorf("Len() once all are full = %d, want 0", got)
	}
}

// TestKeepsWhatIsNotFull compares what is kept with buckets that are kept
// apart, through charges, refunds and a clock that goes back.
func TestKeepsWhatIsNotFull(t *testing.T) {
	t.Parallel()
	s, c := bounded(t, 0)
	rules := []*bucket.Limits{
		mustLimits(t, bucket.Limit{Tokens: 3, Per: time.Second}),
		mustLimits(t, bucket.Limit{Tokens: 20, Per: time.Minute, Refill: bucket.Interval}),
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	buckets := map[string]bucket.Bucket{}
	now := epoch
	for i := range 20_000 {
		now = now.Add(time.Duration(rnd.Int64N(4000)) * time.Microsecond)
		c.set(now)
		if rnd.IntN(1000) == 0 {
			wantLen(t, s, buckets, now)
			now = now.Add(-time.Second)
			c.set(now)
		}
		key := fmt.Sprint(rnd.IntN(5000))
		charge := bucket.Charge{Key: key, Limits: rules[len(key)%2], Cost: rnd.Int64N(8) - 3}
		if _, err := take(t, s, charge); err != nil {
			t.Fatalf("Take(%v) = %v, want no error", charge, err)
		}
		buckets[key], _ = buckets[key].Take(charge.Limits, now, charge.Cost)
		if i%50 == 0 {
			wantLen(t, s, buckets, now)
		}
	}
}

func wantLen(t *testing.T, s *memstore.Store, buckets map[string]bucket.Bucket, now time.Time) {
	t.Helper()
	for key, b := range buckets {
		if _, full := b.At(); !full.After(now) {
			delete(buckets, key)
		}
	}
	if got, want := s.Len(), len(buckets); got != want {
		t.Fatalf("Len() at epoch+%v = %d, want %d", now.Sub(epoch), got, want)
	}
}

// TestChargesSweep wants full buckets dropped by the charges of others.
func TestChargesSweep(t *testing.T) {
	t.Parallel()
	const bound = 1000
	s, c := bounded(t, bound)
	ls := mustLimits(t, bucket.Limit{Tokens: 1, Per: time.Second})
	for i := range 50 * bound {
		c.set(epoch.Add(time.Duration(i) * 2 * time.Millisecond)) // 500 are not full at a time
		wantTake(t, s, true, bucket.Charge{Key: fmt.Sprint(i), Limits: ls, Cost: 1})
	}
}

func TestManyCallersAtTheBound(t *testing.T) {
	t.Parallel()
	const bound = 64
	s, err := memstore.New(memstore.Options{MaxKeys: bound})
	if err != nil {
		t.Fatal(err)
	}
	ls := mustLimits(t, bucket.Limit{Tokens: 1, Per: time.Millisecond})
	var wait sync.WaitGroup
	for caller := range 8 {
		wait.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(caller), 0))
			results := make([]bucket.Result, 3)
			for range 2000 {
				charges := make([]bucket.Charge, 3)
				for i := range charges {
					charges[i] = bucket.Charge{Key: fmt.Sprint(rnd.IntN(300)), Limits: ls, Cost: 1}
				}
				_ = s.Take(t.Context(), charges, results) // full, at times
				if got := s.Len(); got > bound {
					t.Errorf("Len() = %d, want at most %d", got, bound)
				}
			}
		})
	}
	wait.Wait()
}

func TestDefaultClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, err := memstore.New(memstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := bucket.Charge{Limits: mustLimits(t, bucket.Limit{Tokens: 5, Per: 10 * time.Second}), Cost: 5}
		wantTake(t, s, true, c)
		time.Sleep(10*time.Second - time.Microsecond)
		wantTake(t, s, false, c)
		time.Sleep(time.Microsecond)
		wantTake(t, s, true, c)
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, o := range []memstore.Options{{MaxKeys: -1}, {MaxBytes: -1}, {MaxBytes: memstore.LeastMaxBytes - 1}, {OnFull: 2}} {
		if _, err := memstore.New(o); err == nil {
			t.Errorf("New(%+v) = no error, want one", o)
		}
	}
}

func TestTakeRefusesNoLimits(t *testing.T) {
	t.Parallel()
	s, _ := bounded(t, 0)
	if _, err := take(t, s, bucket.Charge{Key: "a", Cost: 1}); err == nil {
		t.Error("Take(a charge without limits) = no error, want one")
	}
}
