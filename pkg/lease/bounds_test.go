package lease_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/lease"
	"github.com/sluice-mesh/sluice/pkg/memstore"
)

// TestBounded watches no more keys than it may, and those that are hot.
func TestBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		memory, err := memstore.New(memstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := lease.New(lease.Options{Store: memory, MaxKeys: 640})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		ls := leasing(t)
		heat(t, s, ls)
		results := make([]bucket.Result, 1)
		for i := range 10_000 {
			if err := s.Take(t.Context(), []bucket.Charge{{Key: fmt.Sprint("key", i), Limits: ls, Cost: 1}}, results); err != nil {
				t.Fatal(err)
			}
		}
		if n := s.Len(); n > 640 || n < 500 {
			t.Errorf("%d keys are watched of 10,001, want at most 640 and hardly less", n)
		}
		if f := s.Figures(); f.Held != 1 {
			t.Errorf("%+v after 10,000 other keys, want the hot one held", f)
		}
	})
}

// TestCloseHangs has a store that does not answer.
func TestCloseHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := open(t)
		heat(t, s, leasing(t))
		d.there = 300 * time.Millisecond
		begun := time.Now()
		if err := s.Close(); err != nil || time.Since(begun) > time.Second {
			t.Errorf("Close() = %v after %v, want it within a second", err, time.Since(begun))
		}
	})
}

// TestCrowd has many spend at once, from several replicas, some of whose answers
// are lost: what is admitted, with what is left and what was lost, is the burst.
func TestCrowd(t *testing.T) {
	t.Parallel()
	memory, err := memstore.New(memstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ls := limits(t, bucket.Limit{Tokens: 1, Per: time.Hour, Burst: 50_000}).Leasing(20, 20*time.Millisecond)
	var admitted atomic.Int64
	var replicas [4]*lease.Keeper
	var wait sync.WaitGroup
	for i := range replicas {
		if replicas[i], err = lease.New(lease.Options{Store: memory}); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			wait.Go(func() {
				results := make([]bucket.Result, 1)
				for range 3000 {
					if err := replicas[i].Take(t.Context(), []bucket.Charge{{Key: "k", Limits: ls, Cost: 1}}, results); err != nil {
						t.Errorf("Take = %v, want no error", err)
					}
					if results[0].Allowed {
						admitted.Add(1)
					}
				}
			})
		}
	}
	wait.Wait()
	lapsed := int64(0)
	for _, r := range replicas {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		f := r.Figures()
		if lapsed += f.Lapsed; f.Held != 0 || f.Leased == 0 || f.Leased != f.Spent+f.Back+f.Lapsed {
			t.Errorf("%+v after Close, want nothing held and all of it accounted for", f)
		}
	}
	got := take(t, memory, ls, 0).Remaining + admitted.Load()
	if got > 50_000 || got < 50_000-4*3000 {
		t.Errorf("%d were admitted or are left of 50,000", got)
	}
	t.Logf("%d admitted, %d admitted or left; %+v", admitted.Load(), got, replicas[0].Figures())
}

func TestNew(t *testing.T) {
	t.Parallel()
	if _, err := lease.New(lease.Options{}); err == nil {
		t.Error("New(no store) = no error, want one")
	}
	if _, err := lease.New(lease.Options{Store: &distant{}, MaxKeys: -1}); err == nil {
		t.Error("New(MaxKeys -1) = no error, want one")
	}
}

// spending returns a charge that a lease of an hour pays.
func spending(t testing.TB) func() {
	t.Helper()
	memory, err := memstore.New(memstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	k, err := lease.New(lease.Options{Store: memory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	ls := limits(t, bucket.Limit{Tokens: 1_000_000_000, Per: 24 * time.Hour}).Leasing(1000, time.Hour)
	charges := []bucket.Charge{{Key: "{k3v9x2ab}4:edge3:api00000", Limits: ls, Cost: 1}}
	results := make([]bucket.Result, 1)
	charge := func() {
		if err := k.Take(t.Context(), charges, results); err != nil {
			t.Fatal(err)
		}
	}
	for range 8 {
		charge()
	}
	if f := k.Figures(); f.Held != 1 {
		t.Fatalf("%+v after 8 charges, want a lease held", f)
	}
	return charge
}

// TestSpendAllocates does not run beside others: what they allocate would count.
func TestSpendAllocates(t *testing.T) {
	if got := testing.AllocsPerRun(100, spending(t)); got != 0 {
		t.Errorf("Take(of a lease that is held) allocates %v times, want 0", got)
	}
}

func BenchmarkSpend(b *testing.B) {
	charge := spending(b)
	b.ReportAllocs()
	for b.Loop() {
		charge()
	}
}
