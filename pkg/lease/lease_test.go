package lease_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/lease"
	"github.com/sluice-mesh/sluice/pkg/memstore"
)

const (
	lasts = 160 * time.Millisecond
	stops = lasts - lasts/8 // since the store was asked
)

// leasing is a bucket of 1000, of which 100 are leased at a time, and which
// gets a token an hour.
func leasing(t testing.TB) *bucket.Limits {
	t.Helper()
	return limits(t, bucket.Limit{Tokens: 1, Per: time.Hour, Burst: 1000}).Leasing(1000, lasts)
}

func limits(t testing.TB, l bucket.Limit) *bucket.Limits {
	t.Helper()
	ls, err := bucket.NewLimits(l)
	if err != nil {
		t.Fatalf("NewLimits(%+v) = %v, want no error", l, err)
	}
	return ls
}

// A distant store takes its time on the way there and back, and may lose
// answers or not be there at all.
type distant struct {
	*memstore.Store
	there, back time.Duration
	longer      atomic.Int64 // on the way there, in ns
	lost, away  atomic.Bool
	calls       atomic.Int64
	mu          sync.Mutex
	leases      []bucket.Lease // of the charges that had one
}

var errLost = errors.New("no answer")

func (d *distant) Take(ctx context.Context, charges []bucket.Charge, results []bucket.Result) error {
	d.calls.Add(1)
	time.Sleep(d.there + time.Duration(d.longer.Load()))
	if d.away.Load() {
		return errLost
	}
	if err := d.Store.Take(ctx, charges, results); err != nil {
		return err
	}
	if l := charges[0].Lease; l != nil {
		d.mu.Lock()
		d.leases = append(d.leases, *l)
		d.mu.Unlock()
	}
	time.Sleep(d.back)
	if d.lost.Load() {
		return errLost
	}
	return nil
}

func (d *distant) last() bucket.Lease {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.leases) == 0 {
		return bucket.Lease{}
	}
	return d.leases[len(d.leases)-1]
}

func open(t *testing.T) (*lease.Keeper, *distant) {
	t.Helper()
	memory, err := memstore.New(memstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := &distant{Store: memory, there: time.Millisecond, back: 2 * time.Millisecond}
	s, err := lease.New(lease.Options{Store: d})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close() = %v, want no error", err)
		}
	})
	return s, d
}

func take(t *testing.T, s interface {
	Take(context.Context, []bucket.Charge, []bucket.Result) error
}, ls *bucket.Limits, cost int64,
) bucket.Result {
	t.Helper()
	results := make([]bucket.Result, 1)
	if err := s.Take(t.Context(), []bucket.Charge{{Key: "k", Limits: ls, Cost: cost}}, results); err != nil {
		t.Fatalf("Take(%d) = %v, want no error", cost, err)
	}
	return results[0]
}

// left is what the store has, without what is leased.
func left(t *testing.T, d *distant, ls *bucket.Limits) int64 {
	t.Helper()
	return take(t, d.Store, ls, 0).Remaining
}

// heat charges until a lease is held: 8 tokens.
func heat(t *testing.T, s *lease.Keeper, ls *bucket.Limits) bucket.Result {
	t.Helper()
	var r bucket.Result
	for range 8 {
		r = take(t, s, ls, 1)
	}
	if f := s.Figures(); f.Held != 1 {
		t.Fatalf("after 8 charges %+v, want 1 held", f)
	}
	return r
}

// TestLease leases once a key is hot, spends without a round trip, and stops in
// time: an eighth before the lease ends, counted from before the store was asked.
func TestLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := open(t)
		ls := leasing(t)
		if r := heat(t, s, ls); r.Remaining != 892 || d.calls.Load() != 8 {
			t.Errorf("the 8th charge leaves %d after %d calls, want 892 after 8", r.Remaining, d.calls.Load())
		}
		asked := time.Now().Add(-d.there - d.back)
		for i := range int64(3) {
			want := bucket.Result{Allowed: true, Remaining: 891 - i, FullIn: lasts + 108*time.Hour}
			if diff := cmp.Diff(want, take(t, s, ls, 1), cmp.Comparer(about)); diff != "" {
				t.Errorf("charge %d of the lease (-want +got):\n%s", i, diff)
			}
		}
		time.Sleep(time.Until(asked.Add(stops)) - 1)
		take(t, s, ls, 90)
		if n := d.calls.Load(); n != 8 || left(t, d, ls) != 892 {
			t.Errorf("%d calls by the end of the lease, want 8", n)
		}
		time.Sleep(2 * time.Nanosecond)
		take(t, s, ls, 1)
		synctest.Wait()
		if n := d.calls.Load(); n < 9 {
			t.Errorf("%d calls after the end of the lease, want more than 8", n)
		}
	})
}

// about is for waits that count down.
func about(a, b time.Duration) bool { return (a - b).Abs() <= 10*time.Millisecond }

// TestGivesBack has what is left given back in time by itself, by the charge
// that finds too little left, by a refund and by Close.
func TestGivesBack(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		do    func(t *testing.T, s *lease.Keeper, ls *bucket.Limits)
		last  bucket.Lease // Back, Spent and Granted
		left  int64
		spent int64
	}{
		"in time": {func(*testing.T, *lease.Keeper, *bucket.Limits) { time.Sleep(stops) }, bucket.Lease{Back: 100, Spent: 30}, 962, 30},
		"too little": {
			func(t *testing.T, s *lease.Keeper, ls *bucket.Limits) { take(t, s, ls, 71) },
			bucket.Lease{Back: 100, Spent: 30, Granted: 100},
			1000 - 8 - 30 - 71 - 100, 30,
		},
		"a refund": {func(t *testing.T, s *lease.Keeper, ls *bucket.Limits) { take(t, s, ls, -20) }, bucket.Lease{Back: 100, Spent: 30}, 982, 30},
		"Close":    {func(_ *testing.T, s *lease.Keeper, _ *bucket.Limits) { _ = s.Close() }, bucket.Lease{Back: 100, Spent: 30}, 962, 30},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, d := open(t)
				ls := leasing(t)
				heat(t, s, ls)
				take(t, s, ls, 30)
				test.do(t, s, ls)
				time.Sleep(d.there + d.back)
				synctest.Wait()
				got := d.last()
				if got.Back != test.last.Back || got.Spent != test.last.Spent || got.Granted != test.last.Granted {
					t.Errorf("the store was told %+v, want %+v", got, test.last)
				}
				if n := left(t, d, ls); n != test.left {
					t.Errorf("%d are left, want %d", n, test.left)
				}
				if f := s.Figures(); f.Spent != test.spent || f.Back != 100-test.spent || f.Lapsed != 0 {
					t.Errorf("%+v, want %d spent and the rest given back", f, test.spent)
				}
			})
		})
	}
}

// TestUnanswered spends nothing of a lease that may have been granted: it
// lapses.
func TestUnanswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := open(t)
		ls := leasing(t)
		for range 7 {
			take(t, s, ls, 1)
		}
		d.lost.Store(true)
		charge := []bucket.Charge{{Key: "k", Limits: ls, Cost: 1}}
		if err := s.Take(t.Context(), charge, make([]bucket.Result, 1)); !errors.Is(err, errLost) {
			t.Errorf("Take(no answer) = %v, want %v", err, errLost)
		}
		d.lost.Store(false)
		if n := left(t, d, ls); n != 892 || s.Figures() != (lease.Figures{}) {
			t.Errorf("%d are left and %+v, want 892: the lease was granted, and nothing held", n, s.Figures())
		}
		d.lost.Store(true)
		calls := d.calls.Load()
		_ = s.Take(t.Context(), charge, make([]bucket.Result, 1))
		if d.calls.Load() != calls+1 {
			t.Error("Take is answered by a lease that nobody told of, want the store asked")
		}
	})
}

// TestUnansweredRow has 20 answers in a row lost: they cost one lease, and
// another is asked for once that has ended.
func TestUnansweredRow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := open(t)
		ls := leasing(t)
		for range 7 {
			take(t, s, ls, 1)
		}
		d.lost.Store(true)
		for range 20 {
			_ = s.Take(t.Context(), []bucket.Charge{{Key: "k", Limits: ls, Cost: 1}}, make([]bucket.Result, 1))
		}
		d.lost.Store(false)
		if n := left(t, d, ls); n != 1000-7-20-100 {
			t.Errorf("%d are left of 1000 after 27 charges, 20 of them unanswered; want all but one lease of 100", n)
		}
		time.Sleep(lasts)
		heat(t, s, ls)
	})
}

// TestAway spends what is held while the store is away, and lets the rest lapse.
func TestAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := open(t)
		ls := leasing(t)
		heat(t, s, ls)
		d.away.Store(true)
		take(t, s, ls, 40)
		time.Sleep(lasts)
		synctest.Wait()
		d.away.Store(false)
		if f, want := s.Figures(), (lease.Figures{Leased: 100, Spent: 40, Lapsed: 60}); f != want {
			t.Errorf("%+v, want %+v", f, want)
		}
		if n := left(t, d, ls); n != 892 {
			t.Errorf("%d are left, want 892: all of the lease counts as spent", n)
		}
	})
}

// TestOtherLimits spends nothing of what was leased under other limits.
func TestOtherLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := open(t)
		old := leasing(t)
		heat(t, s, old)
		same := leasing(t) // a policy that was read again
		if take(t, s, same, 1); d.calls.Load() != 8 {
			t.Errorf("%d calls after a charge under the same limits, want 8", d.calls.Load())
		}
		changed := limits(t, bucket.Limit{Tokens: 1, Per: time.Hour, Burst: 2000}).Leasing(1000, lasts)
		r := take(t, s, changed, 1)
		if got := d.last(); got.Back != 100 || got.Spent != 1 || got.Want != 0 || r.Remaining != 1990 {
			t.Errorf("under other limits the store was told %+v, and has %d left; want 100 back, 1 of them spent, 1990 left", got, r.Remaining)
		}
	})
}

// TestPassesBy has charges that no lease is for.
func TestPassesBy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := open(t)
		ls := leasing(t)
		heat(t, s, ls)
		plain := limits(t, bucket.Limit{Tokens: 1, Per: time.Hour, Burst: 1000})
		for name, charges := range map[string][]bucket.Charge{
			"a look":               {{Key: "k", Limits: ls}},
			"shadow":               {{Key: "k", Limits: ls, Cost: 1, Shadow: true}},
			"a group":              {{Key: "k", Limits: ls, Cost: 1}, {Key: "other", Limits: ls, Cost: 1}},
			"no lease":             {{Key: "k", Limits: plain, Cost: 1}},
			"more than is leased":  {{Key: "k", Limits: ls, Cost: 101}},
			"a key that is not it": {{Key: "cold", Limits: ls, Cost: 1}},
		} {
			before := d.calls.Load()
			if err := s.Take(t.Context(), charges, make([]bucket.Result, len(charges))); err != nil || d.calls.Load() != before+1 {
				t.Errorf("%s: Take = %v with %d calls, want 1", name, err, d.calls.Load()-before)
			}
		}
		if f := s.Figures(); f.Held != 1 || f.Leased != 100 {
			t.Errorf("%+v, want the one lease held still", f)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Take(ctx, []bucket.Charge{{Key: "k", Limits: ls, Cost: 1}}, make([]bucket.Result, 1)); !errors.Is(err, context.Canceled) {
			t.Errorf("Take(canceled) = %v, want %v", err, context.Canceled)
		}
	})
}

// TestDenied asks for no lease for a while where there was nothing to lease.
func TestDenied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, d := open(t)
		ls := limits(t, bucket.Limit{Tokens: 1, Per: time.Hour, Burst: 10}).Leasing(5000, lasts)
		take(t, d.Store, ls, 10)
		d.there, d.back = 0, 0
		for range 20 {
			if take(t, s, ls, 1).Allowed {
				t.Fatal("Take(empty bucket) is allowed, want a denial")
			}
		}
		if n := len(d.leases); n != 1 {
			t.Errorf("20 denials at once ask for %d leases, want 1", n)
		}
	})
}
