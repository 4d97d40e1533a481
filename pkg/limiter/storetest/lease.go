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

// leases are those of a run of Differential.
type leases struct {
	held          []heldLease
	granted, over int
}

type heldLease struct {
	key string
	bucket.Lease
}

// leasing returns charges with a lease in the first, or without, and another
// lease that asks the same. Some are of a bucket that can be leased from.
func (d *driver) leasing(charges []bucket.Charge) ([]bucket.Charge, *bucket.Lease) {
	if !d.chance(4) {
		return charges, nil
	}
	l := bucket.Lease{
		Want: d.Int64N(12) - 1,
		For:  []time.Duration{0, us, ms, 100 * ms, sec, 10 * sec, time.Hour, time.Hour + us}[d.IntN(8)],
	}
	if d.chance(100) {
		l.Want = 1<<63 - 1
	}
	if r := d.rules[len(usualVersions)]; !d.chance(4) {
		charges = []bucket.Charge{{Key: r.keys[d.IntN(len(r.keys))], Limits: r.versions[r.version], Cost: d.cost()}}
	}
	d.leases.handBack(d, &l, charges)
	same := l
	charges[0].Lease = &l
	return charges, &same
}

// handBack has l hand back one of those held, which the first of charges is
// for, if at all.
func (s *leases) handBack(d *driver, l *bucket.Lease, charges []bucket.Charge) {
	i := d.IntN(len(s.held) + 1)
	if i == len(s.held) || d.chance(4) {
		return
	}
	over := s.held[i]
	charges[0].Key = over.key
	l.Back, l.Ends = over.Granted, over.GrantEnds-d.Int64N(1000)*d.Int64N(2)
	l.Spent = d.Int64N(l.Back + 1)
	if d.chance(4) {
		l.Since = d.model.now.UnixMicro() + d.Int64N(3) - 1
	}
	s.held = append(s.held[:i], s.held[i+1:]...)
	s.over++
}

// note keeps what was granted.
func (s *leases) note(charges []bucket.Charge) {
	l := charges[0].Lease
	if l == nil || l.Granted == 0 {
		return
	}
	s.granted++
	if s.held = append(s.held, heldLease{charges[0].Key, *l}); len(s.held) > 20 {
		s.held = s.held[1:]
	}
}

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
	// Nothing is handed back to what counts as spent.
	spent := limits(t, bucket.Limit{Tokens: 50, Per: 10 * sec, Refill: bucket.Interval})
	back := bucket.Lease{Back: 20, Ends: (10 * sec).Microseconds()}
	playLeases(t, h, spent, []leasing{
		{0, 1, bucket.Lease{}, yes(24, 10*sec), 0, 0},
		{sec, 0, back, yes(24, 9*sec), 0, 0},
	})
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
