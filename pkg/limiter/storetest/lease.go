package storetest

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/limiter"
)

// A leasing is a charge of one key that leases.
type leasing struct {
	at    time.Duration // since epoch
	cost  int64
	lease bucket.Lease // its moments since epoch
	want  bucket.Result
	// What is granted, until when since epoch.
	granted int64
	ends    time.Duration
}

// playLeases plays steps on one key.
func playLeases(t *testing.T, h Harness, ls *bucket.Limits, steps []leasing) {
	t.Helper()
	for i, s := range steps {
		h.SetNow(epoch.Add(s.at))
		s.lease.Ends += epoch.UnixMicro()
		s.lease.Since += epoch.UnixMicro()
		c := bucket.Charge{Key: "one", Limits: ls, Cost: s.cost, Lease: &s.lease}
		got := take(t, h.Store, c)[0]
		if diff := cmp.Diff(s.want, got); diff != "" {
			t.Errorf("step %d, at %v: Take(%d with %+v) (-want +got):\n%s", i, s.at, s.cost, s.lease, diff)
		}
		ends := int64(0)
		if s.granted > 0 {
			ends = epoch.Add(s.ends).UnixMicro()
		}
		if s.lease.Granted != s.granted || s.lease.GrantEnds != ends {
			t.Errorf("step %d, at %v: Take(%d) leases %d until %d, want %d until %d", i, s.at, s.cost, s.lease.Granted, s.lease.GrantEnds, s.granted, ends)
		}
	}
}

func wants(n int64, d time.Duration) bucket.Lease { return bucket.Lease{Want: n, For: d} }

// fiftyPer10s has a burst of 50 and brings a token every 200 ms.
func fiftyPer10s(t *testing.T) *bucket.Limits {
	t.Helper()
	return limits(t, bucket.Limit{Tokens: 50, Per: 10 * sec})
}

// lease has tokens that do not come back while they are leased, and from then
// on as if they had been spent when the lease ended.
func lease(t *testing.T, h Harness) {
	playLeases(t, h, fiftyPer10s(t), []leasing{
		{0, 1, wants(20, 16*sec), yes(29, 16*sec+21*200*ms), 20, 16 * sec},
		{sec, 0, bucket.Lease{}, yes(30, 15*sec+20*200*ms), 0, 0},
		{sec, 30, wants(1, sec), yes(0, 15*sec+50*200*ms), 0, 0}, // there is none
		{sec, 5, bucket.Lease{}, no(0, sec, 15*sec+50*200*ms), 0, 0},
		{sec, 31, bucket.Lease{}, no(0, 15*sec+31*200*ms, 15*sec+50*200*ms), 0, 0}, // more than what is spent
		{7 * sec, 0, wants(5, sec), yes(30, 9*sec+20*200*ms), 0, 0},                // a look leases nothing
		{16 * sec, 0, bucket.Lease{}, yes(30, 20*200*ms), 0, 0},
		{17 * sec, 3, wants(40, sec), yes(0, sec+50*200*ms), 32, 18 * sec}, // no more than there are
		{18 * sec, 0, bucket.Lease{}, yes(5, 45*200*ms), 0, 0},
	})
}

// leaseHandedBack is told of leases that are over, in time and not.
func leaseHandedBack(t *testing.T, h Harness) {
	back := func(n, spent int64, ends time.Duration) bucket.Lease {
		return bucket.Lease{Back: n, Spent: spent, Ends: ends.Microseconds()}
	}
	renew := back(10, 10, 12*sec)
	renew.Want, renew.For = 15, 10*sec
	playLeases(t, h, fiftyPer10s(t), []leasing{
		{0, 1, wants(20, 10*sec), yes(29, 10*sec+21*200*ms), 20, 10 * sec},
		{200 * ms, 1000, back(20, 5, 10*sec), no(45, bucket.Never, 5*200*ms), 0, 0}, // though it is denied
		{200 * ms, 0, back(20, 5, 10*sec), yes(45, 5*200*ms), 0, 0},                 // it is over
		{2 * sec, 1, wants(10, 10*sec), yes(39, 10*sec+11*200*ms), 10, 12 * sec},
		{2 * sec, 1, renew, yes(23, 10*sec+27*200*ms), 15, 12 * sec},
		{2 * sec, 0, back(7, 100, 12*sec), yes(23, 10*sec+27*200*ms), 0, 0}, // 7 of 15 go over to what is spent
		{12 * sec, 0, back(8, 0, 12*sec), yes(42, 8*200*ms), 0, 0},          // too late: they count as spent
	})
}

// leaseBesideOthers has leases heeded only in a charge that is alone, and what
// is leased missing for all.
func leaseBesideOthers(t *testing.T, h Harness) {
	ls := fiftyPer10s(t)
	l := wants(10, 10*sec)
	one := bucket.Charge{Key: "one", Limits: ls, Cost: 1, Lease: &l}
	other := charge("{one}other", ls, 1)
	take(t, h.Store, one, other)
	one.Shadow = true
	take(t, h.Store, one)
	if l.Granted != 0 {
		t.Errorf("charges beside another and in shadow lease %d tokens, want 0", l.Granted)
	}
	one.Shadow = false
	take(t, h.Store, one)
	look, all := charge("one", ls, 0), charge("one", ls, 38)
	wantTake(t, h, []bucket.Charge{look}, []bucket.Result{yes(37, 10*sec+13*200*ms)})
	wantTake(t, h, []bucket.Charge{all, other}, []bucket.Result{no(37, 200*ms, 10*sec+13*200*ms), yes(49, 200*ms)})
	wantTake(t, h, []bucket.Charge{charge("one", ls, -20)}, []bucket.Result{yes(40, 10*sec+10*200*ms)})
	all.Cost = 40
	wantTake(t, h, []bucket.Charge{all, other}, []bucket.Result{yes(0, 10*sec+50*200*ms), yes(48, 2*200*ms)})
}

// leaseClockBack sets the clock back under leases: they last as long as they
// had to, and nobody is taken for another.
func leaseClockBack(t *testing.T, h Harness) {
	ls := fiftyPer10s(t)
	late := bucket.Lease{Back: 10, Ends: (10 * sec).Microseconds(), Since: (2 * sec).Microseconds()}
	playLeases(t, h, ls, []leasing{
		{0, 1, wants(10, 10*sec), yes(39, 10*sec+11*200*ms), 10, 10 * sec},
		{-4 * sec, 1, wants(20, 14*sec), yes(18, 14*sec+32*200*ms), 20, 10 * sec}, // ends as the first was told
		{sec, 0, late, yes(20, 9*sec+30*200*ms), 0, 0},                            // which of them is not known
		{6 * sec, 0, bucket.Lease{}, yes(20, 4*sec+30*200*ms), 0, 0},              // what is leased lasted 10 s
		{7 * sec, 0, bucket.Lease{}, yes(25, 3*sec+25*200*ms), 0, 0},
		{10 * sec, 0, bucket.Lease{}, yes(30, 20*200*ms), 0, 0},
	})
}

// leaseChanged has other limits come into force over leases.
func leaseChanged(t *testing.T, h Harness) {
	greedy := func(tokens, burst int64) *bucket.Limits {
		return limits(t, bucket.Limit{Tokens: tokens, Per: 10 * sec, Burst: burst})
	}
	playLeases(t, h, greedy(50, 50), []leasing{{0, 5, wants(20, 10*sec), yes(25, 10*sec+25*200*ms), 20, 10 * sec}})
	for _, c := range []struct {
		ls   *bucket.Limits
		want bucket.Result
	}{
		{greedy(50, 100), yes(75, 10*sec+25*200*ms)},
		{greedy(500, 50), yes(25, 10*sec+25*20*ms)},
		{greedy(50, 22), yes(0, 10*sec+22*200*ms)},
		{greedy(50, 15), yes(0, 10*sec+15*200*ms)},
		{greedy(50, 50).Draining(), yes(25, 10*sec+25*200*ms)},
		{limits(t, bucket.Limit{Tokens: 50, Per: 10 * sec, Refill: bucket.Interval}), yes(25, 10*sec)},
		{limits(t, bucket.Limit{Tokens: 50, Per: 10 * sec, Refill: bucket.Sliding}), yes(25, 10*sec)},
		{limits(t, bucket.Limit{Tokens: 9, Per: time.Minute, Burst: 90}, bucket.Limit{Tokens: 50, Per: 10 * sec}), by(1, yes(25, 10*sec+25*200*ms))},
	} {
		wantTake(t, h, []bucket.Charge{charge("one", c.ls, 0)}, []bucket.Result{c.want})
	}
	// Nothing is handed back under a rate of 0, or to what counts as spent.
	closed := bucket.Lease{Back: 20, Ends: epoch.Add(10 * sec).UnixMicro()}
	take(t, h.Store, bucket.Charge{Key: "one", Limits: limits(t, bucket.Limit{Per: 10 * sec, Burst: 50}), Lease: &closed})
	if closed.Returned != 0 {
		t.Errorf("%d tokens are given back under a rate of 0, want 0", closed.Returned)
	}
	spent := limits(t, bucket.Limit{Tokens: 50, Per: 10 * sec, Refill: bucket.Interval})
	back := bucket.Lease{Back: 20, Ends: (10 * sec).Microseconds()}
	playLeases(t, h, spent, []leasing{
		{0, 1, bucket.Lease{}, yes(24, 10*sec), 0, 0},
		{sec, 0, back, yes(24, 9*sec), 0, 0},
	})
}

// leaseCut has a limit come into force that is all of the second lease, and
// then less.
func leaseCut(t *testing.T, h Harness) {
	greedy := func(burst int64) *bucket.Limits {
		return limits(t, bucket.Limit{Tokens: 50, Per: 10 * sec, Burst: burst})
	}
	playLeases(t, h, greedy(50), []leasing{
		{0, 1, wants(20, 10*sec), yes(29, 10*sec+21*200*ms), 20, 10 * sec},
		{0, 1, wants(10, 20*sec), yes(18, 20*sec+32*200*ms), 10, 20 * sec},
	})
	back := bucket.Lease{Back: 3, Ends: (20 * sec).Microseconds()}
	playLeases(t, h, greedy(10), []leasing{
		{0, 0, back, yes(3, 20*sec+7*200*ms), 0, 0},
		{0, 0, bucket.Lease{}, yes(3, 20*sec+7*200*ms), 0, 0},
	})
	playLeases(t, h, greedy(5), []leasing{
		{0, -1, bucket.Lease{}, yes(0, 20*sec+5*200*ms), 0, 0},
		{20 * sec, 1, bucket.Lease{}, no(0, 200*ms, 5*200*ms), 0, 0},
	})
}

// leaseEndsTogether has leases that end within a 16th of their time end when the
// last of them does.
func leaseEndsTogether(t *testing.T, h Harness) {
	playLeases(t, h, fiftyPer10s(t), []leasing{
		{0, 1, wants(20, 16*sec), yes(29, 16*sec+21*200*ms), 20, 16 * sec},
		{0, 1, wants(5, 16*sec-us), yes(23, 16*sec+27*200*ms), 5, 16*sec - us},
		{500 * ms, 1, wants(5, 16*sec), yes(19, 16*sec+31*200*ms), 5, 16*sec + 500*ms},
		{16 * sec, 0, bucket.Lease{}, yes(20, 500*ms+30*200*ms), 0, 0},
		{16*sec + 500*ms - us, 0, bucket.Lease{}, yes(20, us+30*200*ms), 0, 0},
		{16*sec + 700*ms, 0, bucket.Lease{}, yes(21, 29*200*ms), 0, 0},
	})
}

// leaseEnds has as many leases as a bucket remembers the ends of, and one more.
func leaseEnds(t *testing.T, h Harness) {
	ls := limits(t, bucket.Limit{Tokens: 1, Per: day, Burst: 1000})
	granted, lasts := int64(0), time.Hour
	for i := range int64(66) {
		l, want := wants(10, lasts), int64(10)
		switch i {
		case 64:
			want = 0
		case 65:
			l.For = time.Hour // ends when the first does
		}
		granted += want
		left := take(t, h.Store, bucket.Charge{Key: "one", Limits: ls, Cost: 1, Lease: &l})[0].Remaining
		if l.Granted != want || left != 1000-i-1-granted {
			t.Errorf("lease %d is of %d tokens, %d are left; want %d and %d", i+1, l.Granted, left, want, 1000-i-1-granted)
		}
		lasts = (lasts * 100 / 107).Truncate(us) // more than a 16th less
	}
}

// leaseToldLate tells of leases that are over and again of one that was told of:
// what another has stays leased.
func leaseToldLate(t *testing.T, h Harness) {
	back := func(since, ends time.Duration) bucket.Lease {
		return bucket.Lease{Back: 10, Since: since.Microseconds(), Ends: ends.Microseconds(), Sooner: (10 * sec).Microseconds()}
	}
	playLeases(t, h, fiftyPer10s(t), []leasing{
		{0, 1, wants(10, sec), yes(39, sec+11*200*ms), 10, sec},
		{0, 1, wants(10, 3*sec), yes(28, 3*sec+22*200*ms), 10, 3 * sec},
		{sec, 0, back(0, sec), yes(30, 2*sec+20*200*ms), 0, 0}, // the first is spent
		{sec, 0, back(sec+us, 3*sec), yes(30, 2*sec+20*200*ms), 0, 0},
		{2 * sec, 1, wants(10, 3*sec), yes(24, 3*sec+26*200*ms), 10, 5 * sec},
		{2 * sec, 0, back(0, 3*sec), yes(34, 3*sec+16*200*ms), 0, 0},
		{3 * sec, 0, back(0, 3*sec), yes(39, 2*sec+11*200*ms), 0, 0}, // again
		{5 * sec, 0, bucket.Lease{}, yes(40, 10*200*ms), 0, 0},
	})
}

// leaseOfSeveral tells of a lease of more tokens than the one that ends first
// has: the others are of what ends next.
func leaseOfSeveral(t *testing.T, h Harness) {
	back := func(n, spent int64, ends, sooner time.Duration) bucket.Lease {
		return bucket.Lease{Back: n, Spent: spent, Ends: ends.Microseconds(), Sooner: sooner.Microseconds()}
	}
	playLeases(t, h, fiftyPer10s(t), []leasing{
		{0, 1, wants(5, 10*sec), yes(44, 10*sec+6*200*ms), 5, 10 * sec},
		{sec, 1, wants(20, 10*sec), yes(24, 10*sec+26*200*ms), 20, 11 * sec},
		{sec, 1, wants(10, 16*sec), yes(13, 16*sec+37*200*ms), 10, 17 * sec},
		{sec, 0, back(20, 4, 11*sec, sec), yes(29, 16*sec+21*200*ms), 0, 0},   // all of the first, 15 of the second
		{sec, 0, back(5, 5, 10*sec, -2*sec), yes(29, 16*sec+21*200*ms), 0, 0}, // it is in the second
		{11 * sec, 0, bucket.Lease{}, yes(40, 6*sec+10*200*ms), 0, 0},
		{11 * sec, 0, back(30, 30, 17*sec, 0), yes(40, 10*200*ms), 0, 0}, // there are 10
	})
}

// leaseReturned says how many tokens are given back.
func leaseReturned(t *testing.T, h Harness) {
	ls, ends := fiftyPer10s(t), epoch.Add(10*sec).UnixMicro()
	take(t, h.Store, bucket.Charge{Key: "one", Limits: ls, Cost: 1, Lease: &bucket.Lease{Want: 20, For: 10 * sec}})
	for i, step := range []struct {
		lease bucket.Lease
		want  int64
	}{
		{bucket.Lease{Back: 5, Ends: ends, Since: ends}, 0},
		{bucket.Lease{Back: 5, Ends: ends + 1}, 0},
		{bucket.Lease{Back: 5, Spent: 3, Ends: ends}, 5},
		{bucket.Lease{Back: 20, Ends: ends, Want: 4, For: sec}, 15},
		{bucket.Lease{Back: 20, Ends: ends}, 0},
	} {
		take(t, h.Store, bucket.Charge{Key: "one", Limits: ls, Cost: 1, Lease: &step.lease})
		if step.lease.Returned != step.want {
			t.Errorf("step %d: Take(1 with %+v) gives %d back, want %d", i, step.lease, step.lease.Returned, step.want)
		}
	}
}

// leaseCrowd has callers lease and hand back at once: what is admitted at one
// moment is the burst, with or without what is leased.
func leaseCrowd(t *testing.T, h Harness) {
	ls := limits(t, bucket.Limit{Tokens: 500, Per: time.Hour})
	var admitted atomic.Int64
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() { admitted.Add(leaseAll(t, h.Store, ls)) })
	}
	wait.Wait()
	if got := admitted.Load(); got != 500 {
		t.Errorf("8 callers with leases on a bucket of 500 admitted %d, want 500", got)
	}
	wantTake(t, h, []bucket.Charge{charge("one", ls, 0)}, []bucket.Result{yes(0, time.Hour)})
}

// leaseAll admits until it is denied, and hands back the rest.
func leaseAll(t *testing.T, s limiter.Store, ls *bucket.Limits) (admitted int64) {
	var over bucket.Lease
	for {
		l := bucket.Lease{Want: 7, For: sec, Back: over.Granted, Spent: over.Granted, Ends: over.GrantEnds}
		results := make([]bucket.Result, 1)
		if err := s.Take(t.Context(), []bucket.Charge{{Key: "one", Limits: ls, Cost: 1, Lease: &l}}, results); err != nil {
			t.Errorf("Take(1 with a lease) = %v, want no error", err)
			return admitted
		}
		if !results[0].Allowed {
			return admitted
		}
		over = l
		admitted += 1 + l.Granted
	}
}
