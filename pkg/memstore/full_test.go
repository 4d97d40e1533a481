package memstore_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/memstore"
)

// crowded is a store with no room for another key, beside "old", which has
// spent 1 of 2.
func crowded(t *testing.T, onFull memstore.OnFull, ls *bucket.Limits) *memstore.Store {
	t.Helper()
	c := &clock{}
	c.set(epoch)
	s, err := memstore.New(memstore.Options{MaxKeys: 2, OnFull: onFull, Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	wantTake(t, s, true, bucket.Charge{Key: "old", Limits: ls, Cost: 1}, bucket.Charge{Key: "other", Limits: ls, Cost: 2})
	return s
}

// TestDeny answers a new key that finds no room as one that is empty.
func TestDeny(t *testing.T) {
	t.Parallel()
	ls := mustLimits(t, bucket.Limit{Tokens: 2, Per: time.Minute})
	s := crowded(t, memstore.Deny, ls)
	fresh, old := bucket.Charge{Key: "new", Limits: ls, Cost: 1}, bucket.Charge{Key: "old", Limits: ls, Cost: 1}
	look, back, shadow, other := fresh, fresh, fresh, fresh
	other.Limits = mustLimits(t, bucket.Limit{Tokens: 6, Per: time.Minute, Burst: 9})
	look.Cost, back.Cost, shadow.Shadow = 0, -1, true
	empty := bucket.Result{RetryAfter: 30 * time.Second, FullIn: time.Minute}
	half := bucket.Result{Allowed: true, Remaining: 1, FullIn: 30 * time.Second}
	full := bucket.Result{Allowed: true, Remaining: 2}
	for _, test := range []struct {
		name    string
		charges []bucket.Charge
		want    []bucket.Result
	}{
		{"alone", []bucket.Charge{fresh}, []bucket.Result{empty}},
		{"with one that has room, which is not charged", []bucket.Charge{old, fresh}, []bucket.Result{half, empty}},
		{"a look, which needs none", []bucket.Charge{look}, []bucket.Result{full}},
		{"a refund, which needs none", []bucket.Charge{back}, []bucket.Result{full}},
		{"twice", []bucket.Charge{fresh, fresh}, []bucket.Result{{RetryAfter: time.Minute, FullIn: time.Minute}, {RetryAfter: time.Minute, FullIn: time.Minute}}},
		{"under two limits, of which the first decides", []bucket.Charge{fresh, other}, []bucket.Result{
			{RetryAfter: time.Minute, FullIn: time.Minute}, {Allowed: true, Remaining: 7, FullIn: 20 * time.Second},
		}},
		{"in shadow, which denies nobody", []bucket.Charge{shadow, old}, []bucket.Result{empty, {Allowed: true, FullIn: time.Minute}}},
		{"old ones go on", []bucket.Charge{old}, []bucket.Result{{RetryAfter: 30 * time.Second, FullIn: time.Minute}}},
	} {
		got, err := take(t, s, test.charges...)
		if err != nil {
			t.Fatalf("%s: Take() = %v, want no error", test.name, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: Take(%+v) (-want +got):\n%s", test.name, test.charges, diff)
		}
	}
	if got := s.Len(); got != 2 {
		t.Errorf("Len() = %d, want 2: none was added", got)
	}
	if got := s.Refused(); got != 5 {
		t.Errorf("Refused() = %d, want 5", got)
	}
}

// TestGrowthAtTheBound fills a store with keys whose buckets grow: each goes on
// to be counted exactly, or is denied, but none is forgotten.
func TestGrowthAtTheBound(t *testing.T) {
	t.Parallel()
	c := &clock{}
	c.set(epoch)
	s, err := memstore.New(memstore.Options{MaxBytes: memstore.LeastMaxBytes, Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	ls := mustLimits(t, bucket.Limit{Tokens: 40, Per: time.Hour, Refill: bucket.Sliding})
	charge := func(i int) bucket.Charge { return bucket.Charge{Key: fmt.Sprint("key ", i), Limits: ls, Cost: 1} }
	var kept []int
	for i := range 20_000 {
		if results, _ := take(t, s, charge(i)); results[0].Allowed {
			kept = append(kept, i)
		}
	}
	taken := make([]int64, len(kept))
	for i := range taken {
		taken[i] = 1
	}
	denied := 0
	rnd := rand.New(rand.NewPCG(1, 1))
	for step := range 40_000 {
		c.set(epoch.Add(time.Duration(step) * time.Second / 20)) // half an hour and more
		i := rnd.IntN(len(kept))
		results, err := take(t, s, charge(kept[i]))
		if err != nil {
			t.Fatal(err)
		}
		if results[0].Allowed {
			taken[i]++
		} else {
			denied++
		}
		if got := s.Bytes(); got > memstore.LeastMaxBytes {
			t.Fatalf("Bytes() = %d, want at most %d", got, memstore.LeastMaxBytes)
		}
	}
	if denied == 0 {
		t.Error("nothing was denied, want the store to be too small for that")
	}
	for i, n := range taken {
		look := charge(kept[i])
		look.Cost = 0
		results, err := take(t, s, look)
		if err != nil || results[0].Remaining != 40-n {
			t.Fatalf("Take(look at key %d) = %+v, %v, want %d left", kept[i], results[0], err, 40-n)
		}
	}
}

// TestManyCharges charges ten thousand buckets in one call.
func TestManyCharges(t *testing.T) {
	t.Parallel()
	s, _ := bounded(t, 0)
	ls := mustLimits(t, bucket.Limit{Tokens: 2, Per: time.Hour})
	charges := make([]bucket.Charge, 10_000)
	for i := range charges {
		charges[i] = bucket.Charge{Key: fmt.Sprint(i), Limits: ls, Cost: 1}
	}
	wantTake(t, s, true, charges...)
	wantTake(t, s, true, charges...)
	wantTake(t, s, false, charges[0])
	results, err := take(t, s, append(charges[:9999:9999], bucket.Charge{Key: "new", Limits: ls, Cost: 1})...)
	if err != nil || results[0].Allowed || !results[9999].Allowed {
		t.Errorf("Take(9999 that are empty, one that is full) = %+v and %+v, %v, want denied and room", results[0], results[9999], err)
	}
	if got := s.Len(); got != 10_000 {
		t.Errorf("Len() = %d, want 10000", got)
	}
}

// TestChangedLimits keeps keys under limits that each call makes anew.
func TestChangedLimits(t *testing.T) {
	t.Parallel()
	s, c := bounded(t, 0)
	for i := range 20_000 {
		c.set(epoch.Add(time.Duration(i) * time.Millisecond))
		ls := mustLimits(t, bucket.Limit{Tokens: 1 + int64(i%7), Per: time.Second})
		results, err := take(t, s, bucket.Charge{Key: fmt.Sprint(i % 100), Limits: ls, Cost: 1})
		if err != nil {
			t.Fatalf("Take() = %+v, %v, want no error", results, err)
		}
	}
	c.set(epoch.Add(time.Hour))
	if got := s.Len(); got != 0 {
		t.Errorf("Len() = %d, want 0", got)
	}
}

func TestLongKeys(t *testing.T) {
	t.Parallel()
	s, _ := bounded(t, 0)
	ls := mustLimits(t, bucket.Limit{Tokens: 1, Per: time.Hour})
	longest := bucket.Charge{Key: string(make([]byte, memstore.MaxKeyLen)), Limits: ls, Cost: 1}
	wantTake(t, s, true, longest)
	wantTake(t, s, false, longest)
	longest.Key += "k"
	if _, err := take(t, s, longest); err == nil {
		t.Error("Take(a key that is too long) = no error, want one")
	}
}
