package memstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/memstore"
)

// What is put is what is charged from then on, by this store's clock.
func TestPut(t *testing.T) {
	t.Parallel()
	for _, refill := range []bucket.Refill{bucket.Greedy, bucket.Interval, bucket.Sliding} {
		ls := mustLimits(t, bucket.Limit{Tokens: 10, Per: time.Hour, Refill: refill})
		s, _ := openAt(t, epoch)
		for i, step := range []struct {
			put  int64 // tokens that are spent, as another clock has it; -1 for no Put
			cost int64
			left int64
		}{
			{-1, 1, 9},
			{6, 1, 3},
			{2, 0, 8},
			{0, 0, 10},
			{10, 0, 0},
		} {
			if step.put >= 0 {
				elsewhere, _ := bucket.Bucket{}.Take(ls, epoch.Add(-1000*time.Hour), step.put)
				if !s.Put("k", elsewhere) {
					t.Errorf("%v, step %d: Put(k) = false, want true", refill, i)
				}
			}
			got, err := take(t, s, bucket.Charge{Key: "k", Limits: ls, Cost: step.cost})
			if err != nil || got[0].Remaining != step.left {
				t.Errorf("%v, step %d: Take(%d) = %+v, %v, want remaining %d", refill, i, step.cost, got, err, step.left)
			}
			parts := s.Bucket("k", ls).Parts(ls)
			if spent := 10 - step.left; (spent > 0) != (len(parts) == 1) || spent > 0 && parts[0].Spent != spent {
				t.Errorf("%v, step %d: Bucket(k) = %+v, want %d spent", refill, i, parts, spent)
			}
		}
		if got := s.Len(); got != 1 {
			t.Errorf("Len() = %d, want 1", got)
		}
	}
}

// What is put may be larger or smaller than what it replaces, and under other
// limits.
func TestPutOfAnotherSize(t *testing.T) {
	t.Parallel()
	sliding := mustLimits(t, bucket.Limit{Tokens: 100, Per: time.Hour, Refill: bucket.Sliding})
	two := mustLimits(t, bucket.Limit{Tokens: 100, Per: time.Hour}, bucket.Limit{Tokens: 1000, Per: 24 * time.Hour})
	s, _ := openAt(t, epoch)
	for i, step := range []struct {
		limits  *bucket.Limits
		charges int // of 2 tokens, a minute apart
	}{
		{sliding, 1},
		{sliding, 40},
		{two, 3},
		{two, 5},
		{sliding, 2},
		{sliding, 0},
		{two, 1},
	} {
		var b bucket.Bucket
		var want bucket.Result
		for n := range step.charges {
			b, want = b.Take(step.limits, epoch.Add(time.Duration(n)*time.Minute), 2)
		}
		if step.charges == 0 {
			want.Remaining = 100
		}
		s.Put("k", b)
		got, err := take(t, s, bucket.Charge{Key: "k", Limits: step.limits})
		if err != nil || got[0].Remaining != want.Remaining {
			t.Errorf("step %d: Take(0) after Put = %+v, %v, want remaining %d", i, got, err, want.Remaining)
		}
	}
}

// What others tell leaves room for what is charged here.
func TestPutLeavesRoom(t *testing.T) {
	t.Parallel()
	ls := mustLimits(t, bucket.Limit{Tokens: 10, Per: time.Hour})
	s, err := memstore.New(memstore.Options{MaxBytes: memstore.LeastMaxBytes})
	if err != nil {
		t.Fatal(err)
	}
	b, _ := bucket.Bucket{}.Take(ls, time.Now(), 1)
	put := 0
	for i := range 100_000 {
		if s.Put(fmt.Sprint("told", i), b) {
			put++
		}
	}
	if put == 100_000 || s.Bytes() > memstore.LeastMaxBytes/2 {
		t.Errorf("Put put %d keys in %d bytes, want some refused and at most half of %d bytes", put, s.Bytes(), memstore.LeastMaxBytes)
	}
	for i := range put / 2 {
		got, err := take(t, s, bucket.Charge{Key: fmt.Sprint("own", i), Limits: ls, Cost: 1})
		if err != nil || !got[0].Allowed {
			t.Fatalf("Take of new key %d after %d were put = %+v, %v, want it allowed", i, put, got, err)
		}
	}
}
