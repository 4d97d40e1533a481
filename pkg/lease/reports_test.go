package lease_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/lease"
)

// TestReportUnanswered tells the store once, whatever comes of that: told again,
// it could take the tokens of another lease for those.
func TestReportUnanswered(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(t *testing.T, s *lease.Keeper, ls *bucket.Limits){
		"in time": func(*testing.T, *lease.Keeper, *bucket.Limits) { time.Sleep(stops + 10*time.Millisecond) },
		"too little": func(t *testing.T, s *lease.Keeper, ls *bucket.Limits) {
			if err := s.Take(t.Context(), []bucket.Charge{{Key: "k", Limits: ls, Cost: 71}}, make([]bucket.Result, 1)); !errors.Is(err, errLost) {
				t.Errorf("Take(no answer) = %v, want %v", err, errLost)
			}
		},
		"Close": func(_ *testing.T, s *lease.Keeper, _ *bucket.Limits) { _ = s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, d := open(t)
				ls := leasing(t)
				heat(t, s, ls)
				take(t, s, ls, 30)
				d.lost.Store(true)
				do(t, s, ls)
				time.Sleep(lasts)
				synctest.Wait()
				d.lost.Store(false)
				told := 0
				for _, l := range d.leases {
					if l.Back > 0 {
						told++
					}
				}
				if f := s.Figures(); told != 1 || f.Held != 0 || f.Spent != 30 || f.Lapsed != 70 {
					t.Errorf("the store was told %d times, and %+v; want it once, 30 spent and 70 lapsed", told, f)
				}
			})
		})
	}
}

// TestReportLate has a report that is answered, and came too late.
func TestReportLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := open(t)
		ls := leasing(t)
		heat(t, s, ls)
		take(t, s, ls, 30)
		d.longer.Store(int64(lasts / 8))
		time.Sleep(lasts * 2)
		synctest.Wait()
		if f, want := s.Figures(), (lease.Figures{Leased: 100, Spent: 30, Lapsed: 70}); f != want || left(t, d, ls) != 892 {
			t.Errorf("%+v, and %d are left; want %+v, and 892: all of the lease counts as spent", f, left(t, d, ls), want)
		}
	})
}

// TestMeanwhile has charges come while a lease is on its way, and while one is
// told of: they go to the store, which is asked for one lease at a time and has
// what was told of spent by nobody.
func TestMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := open(t)
		ls := leasing(t)
		for range 7 {
			take(t, s, ls, 1)
		}
		at := func(cost int64, n int) {
			before := d.calls.Load()
			var wait sync.WaitGroup
			wait.Go(func() { take(t, s, ls, cost) })
			synctest.Wait()
			for range n {
				wait.Go(func() { take(t, s, ls, 1) })
			}
			wait.Wait()
			if got := d.calls.Load() - before; got != int64(1+n) {
				t.Errorf("%d charges while a lease is asked for make %d calls, want %d", n, got-1, n)
			}
		}
		at(1, 5) // the first lease
		take(t, s, ls, 1)
		at(100, 5) // more than is left of it
		if f := s.Figures(); f.Leased != 200 || f.Back != 99 || len(d.leases) != 2 {
			t.Errorf("%+v after asking %d times, want 200 leased and 99 of them given back, for one call each", f, len(d.leases))
		}
		take(t, s, ls, 100)
		if n := left(t, d, ls); n != 1000-219 {
			t.Errorf("%d are left of 1000 after 219 were admitted, want %d", n, 1000-219)
		}
	})
}

// TestFewLeft leases what there is, and spends no more.
func TestFewLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := open(t)
		ls := leasing(t)
		take(t, d.Store, ls, 1000-8-25)
		heat(t, s, ls)
		admitted := 0
		for range 40 {
			if take(t, s, ls, 1).Allowed {
				admitted++
			}
		}
		if f := s.Figures(); admitted != 25 || f.Leased != 25 {
			t.Errorf("%d are admitted of the 25 that were left, %+v", admitted, f)
		}
	})
}

// TestForeign has a store that finds no bucket under the key.
func TestForeign(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls int
		s, err := lease.New(lease.Options{Store: storeFunc(func(charges []bucket.Charge, results []bucket.Result) error {
			if calls++; charges[0].Lease != nil {
				charges[0].Lease.Granted, charges[0].Lease.GrantEnds = 100, time.Now().Add(lasts).UnixMicro()
			}
			results[0] = bucket.Result{Err: errLost}
			return nil
		})})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		ls := leasing(t)
		for i := range 20 {
			if r := take(t, s, ls, 1); !errors.Is(r.Err, errLost) || calls != i+1 {
				t.Errorf("Take(no bucket of ours) = %+v by %d calls, want %v by %d", r, calls, errLost, i+1)
			}
		}
	})
}

type storeFunc func(charges []bucket.Charge, results []bucket.Result) error

func (f storeFunc) Take(_ context.Context, charges []bucket.Charge, results []bucket.Result) error {
	return f(charges, results)
}

// TestClosed spends nothing that was leased to it after Close, and leases no
// more.
func TestClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := open(t)
		ls := leasing(t)
		for range 7 {
			take(t, s, ls, 1)
		}
		var wait sync.WaitGroup
		wait.Go(func() { take(t, s, ls, 1) })
		synctest.Wait()
		if err := s.Close(); err != nil {
			t.Errorf("Close() = %v, want no error", err)
		}
		wait.Wait()
		for range 20 {
			take(t, s, ls, 1)
		}
		if f := s.Figures(); f != (lease.Figures{}) || d.calls.Load() != 28 || len(d.leases) != 1 {
			t.Errorf("%+v after 28 charges by %d calls, of which %d asked for a lease; want 28, the one from before Close, and nothing held", f, d.calls.Load(), len(d.leases))
		}
	})
}
