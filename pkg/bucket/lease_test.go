package bucket_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// leasing says that b holds leases.
func leasing(b bucket.Bucket, ls *bucket.Limits, now time.Time) bool {
	settled := b.Settle(ls, now)
	for i, p := range settled.Parts(ls) {
		if ls.At(i).Refill == bucket.Greedy && len(p.Log) > 0 {
			return true
		}
	}
	return false
}

// lease asks for tokens or gives back those of one of held, or of none.
func (p *tape) lease(held *[]bucket.Lease, now time.Time) *bucket.Lease {
	l := &bucket.Lease{
		Want: int64(p.next(40) - 2),
		For:  []time.Duration{0, us, 16 * us, ms, 100 * ms, time.Second, time.Hour, time.Hour + us}[p.next(8)],
	}
	if len(*held) == 0 || p.next(3) == 0 {
		return l
	}
	i := p.next(len(*held))
	over := (*held)[i]
	*held = append((*held)[:i], (*held)[i+1:]...)
	l.Back, l.Ends = over.Granted, over.GrantEnds-int64(p.next(2)*p.next(256))
	l.Spent = over.Granted * int64(p.next(5)) / 4
	if p.next(4) == 0 {
		l.Sooner = int64(p.next(256)) << (4 * p.next(5))
	}
	if p.next(4) == 0 {
		l.Since = now.UnixMicro() + int64(p.next(3)-1)
	}
	return l
}

// copied returns a Lease that asks the same.
func copied(l *bucket.Lease) *bucket.Lease {
	if l == nil {
		return nil
	}
	other := *l
	return &other
}

// heldBy notes what l has come to.
func (a *tally) heldBy(held *[]bucket.Lease, l *bucket.Lease) {
	if l == nil {
		return
	}
	if l.Granted > 0 {
		a.leases++
		*held = append(*held, *l)
	}
	if l.Back > 0 {
		a.ended++
	}
}

// TestLease leases from a bucket of 100 with 10 tokens a second.
func TestLease(t *testing.T) {
	t.Parallel()
	ls := mustLimits(t, bucket.Limit{Tokens: 10, Per: sec, Burst: 100})
	var b bucket.Bucket
	for i, step := range []struct {
		at            time.Duration
		cost          int64
		lease         bucket.Lease // its moments since epoch
		left          int64
		full          time.Duration
		granted, ends int64
	}{
		// One is spent. 20 are not there, and do not come back while they are leased.
		{0, 1, bucket.Lease{Want: 20, For: 16 * sec}, 79, 16*sec + 2100*ms, 20, 16_000_000},
		{sec, 0, bucket.Lease{}, 80, 15*sec + 2*sec, 0, 0},
		// These end in the same second as others: when the later ones do.
		{sec + 500*ms, 1, bucket.Lease{Want: 5, For: 15 * sec}, 74, 15*sec + 2600*ms, 5, 16_500_000},
		// All of the first are given back, a quarter spent, though there is no room for the cost.
		{2 * sec, 1000, bucket.Lease{Back: 20, Spent: 5, Ends: 16_000_000}, 90, 14500*ms + sec, 0, 0},
		// Never twice: what there is was leased by others.
		{16_500 * ms, 0, bucket.Lease{Back: 20, Spent: 0, Ends: 16_000_000}, 95, 500 * ms, 0, 0},
		// No more than there is.
		{17 * sec, 40, bucket.Lease{Want: 1000, For: sec}, 0, sec + 10*sec, 60, 18_000_000},
		// Nothing comes of it before the clock says that it can.
		{17 * sec, 0, bucket.Lease{Back: 60, Ends: 18_000_000, Since: 17_000_001}, 0, 11 * sec, 0, 0},
		{17 * sec, 0, bucket.Lease{Back: 60, Spent: 60, Ends: 18_000_000, Since: 17_000_000}, 0, 10 * sec, 0, 0},
	} {
		step.lease.Ends = sinceEpoch(step.lease.Ends)
		step.lease.Since = sinceEpoch(step.lease.Since)
		var r bucket.Result
		b, r = b.Charge(&bucket.Charge{Limits: ls, Cost: step.cost, Lease: &step.lease}, epoch.Add(step.at))
		got := []any{r.Remaining, r.FullIn, step.lease.Granted, step.lease.GrantEnds}
		if diff := cmp.Diff([]any{step.left, step.full, step.granted, sinceEpoch(step.ends)}, got); diff != "" {
			t.Errorf("step %d: Charge(%d, %+v): remaining, full, granted, ends (-want +got):\n%s", i, step.cost, step.lease, diff)
		}
	}
}

func sinceEpoch(us int64) int64 {
	if us == 0 {
		return 0
	}
	return epoch.UnixMicro() + us
}

// TestLeaseOfLimits has limits that are not leased from, and what each leases.
func TestLeaseOfLimits(t *testing.T) {
	t.Parallel()
	debt, err := bucket.NewDebtLimits(0, bucket.Limit{Tokens: 10, Per: sec})
	if err != nil {
		t.Fatal(err)
	}
	ten := mustLimits(t, bucket.Limit{Tokens: 10, Per: sec})
	for name, test := range map[string]struct {
		ls   *bucket.Limits
		want int64
	}{
		"greedy":   {ten, 5},
		"interval": {mustLimits(t, bucket.Limit{Tokens: 10, Per: sec, Refill: bucket.Interval}), 0},
		"sliding":  {mustLimits(t, bucket.Limit{Tokens: 10, Per: sec, Refill: bucket.Sliding}), 0},
		"two":      {mustLimits(t, bucket.Limit{Tokens: 10, Per: sec}, bucket.Limit{Tokens: 20, Per: time.Minute}), 0},
		"closed":   {mustLimits(t, bucket.Limit{Per: sec}), 0},
		"debt":     {debt, 0},
		"draining": {ten.Draining(), 0},
	} {
		lease := bucket.Lease{Want: 5, For: sec}
		_, _ = bucket.Bucket{}.Charge(&bucket.Charge{Limits: test.ls, Cost: 1, Lease: &lease}, epoch)
		if lease.Granted != test.want || test.ls.Leasable() != (test.want > 0) {
			t.Errorf("%s: leases %d tokens, Leasable() = %v; want %d", name, lease.Granted, test.ls.Leasable(), test.want)
		}
	}
	for share, want := range map[int64]int64{1: 1, 100: 10, 5000: 500} {
		ls := mustLimits(t, bucket.Limit{Tokens: 1000, Per: sec})
		tokens, d := ls.Leasing(share, sec).Lease()
		if none, _ := ls.Lease(); tokens != want || d != sec || none != 0 || !ls.Leasing(share, sec).Same(ls) {
			t.Errorf("Leasing(%d).Lease() = %d, %v; want %d, 1s of limits that count the same", share, tokens, d, want)
		}
	}
	huge := mustLimits(t, bucket.Limit{Tokens: 1 << 52, Per: ms, Burst: 1<<53 - 1})
	if tokens, _ := huge.Leasing(5000, sec).Lease(); tokens != 1<<52-1 {
		t.Errorf("Leasing(half of 2^53-1).Lease() = %d, want %d", tokens, int64(1<<52-1))
	}
}

// TestLeaseAlone heeds the lease of a charge that is the only one, and no other.
func TestLeaseAlone(t *testing.T) {
	t.Parallel()
	ls := mustLimits(t, bucket.Limit{Tokens: 10, Per: sec})
	other := bucket.Charge{Key: "b", Limits: ls, Cost: 1}
	for name, test := range map[string]struct {
		charges []bucket.Charge
		want    int64
	}{
		"alone":        {[]bucket.Charge{{Key: "a", Limits: ls, Cost: 1}}, 5},
		"no cost":      {[]bucket.Charge{{Key: "a", Limits: ls}}, 0},
		"a refund":     {[]bucket.Charge{{Key: "a", Limits: ls, Cost: -1}}, 0},
		"denied":       {[]bucket.Charge{{Key: "a", Limits: ls, Cost: 11}}, 0},
		"shadow":       {[]bucket.Charge{{Key: "a", Limits: ls, Cost: 1, Shadow: true}}, 0},
		"among others": {[]bucket.Charge{{Key: "a", Limits: ls, Cost: 1}, other}, 0},
	} {
		lease, k := bucket.Lease{Want: 5, For: sec}, kept{}
		test.charges[0].Lease = &lease
		k.group(epoch, test.charges...)
		left, _ := k.group(epoch, bucket.Charge{Key: "a", Limits: ls})
		spent := int64(0)
		if test.charges[0].Cost == 1 && !test.charges[0].Shadow || name == "shadow" {
			spent = 1
		}
		if lease.Granted != test.want || left[0].Remaining != 10-spent-test.want {
			t.Errorf("%s: leases %d and leaves %d, want %d and %d", name, lease.Granted, left[0].Remaining, test.want, 10-spent-test.want)
		}
	}
}

// TestLeaseEnds bounds how many ends a bucket remembers.
func TestLeaseEnds(t *testing.T) {
	t.Parallel()
	ls := mustLimits(t, bucket.Limit{Tokens: 1_000_000, Per: time.Hour})
	var b bucket.Bucket
	for i := range 5000 {
		lease := bucket.Lease{Want: 1, For: 100 * ms}
		if b, _ = b.Charge(&bucket.Charge{Limits: ls, Cost: 1, Lease: &lease}, epoch.Add(time.Duration(i)*ms)); lease.Granted != 1 {
			t.Fatalf("charge %d leases %d tokens, want 1", i, lease.Granted)
		}
		if ends := len(b.Parts(ls)[0].Log); ends > 17 {
			t.Fatalf("%d leases end at %d moments, want at most 17", i, ends)
		}
	}
}

// TestLeaseUnderOtherLimits changes the limits of a bucket of 20, of which 5 are
// spent and 10 leased.
func TestLeaseUnderOtherLimits(t *testing.T) {
	t.Parallel()
	lease := bucket.Lease{Want: 10, For: 10 * sec}
	b, _ := bucket.Bucket{}.Charge(&bucket.Charge{Limits: mustLimits(t, bucket.Limit{Tokens: 1, Per: time.Minute, Burst: 20}), Cost: 5, Lease: &lease}, epoch)
	for name, test := range map[string]struct {
		limit       bucket.Limit
		now, lapsed int64 // what is left
	}{
		"the same":    {bucket.Limit{Tokens: 1, Per: time.Minute, Burst: 20}, 5, 5},
		"more":        {bucket.Limit{Tokens: 1, Per: time.Minute, Burst: 50}, 35, 35},
		"less":        {bucket.Limit{Tokens: 1, Per: time.Minute, Burst: 12}, 0, 0},
		"much less":   {bucket.Limit{Tokens: 1, Per: time.Minute, Burst: 7}, 0, 0},
		"faster":      {bucket.Limit{Tokens: 1, Per: sec, Burst: 20}, 5, 10}, // what is leased does not come back sooner
		"interval":    {bucket.Limit{Tokens: 1, Per: sec, Burst: 20, Refill: bucket.Interval}, 5, 15},
		"sliding":     {bucket.Limit{Tokens: 20, Per: time.Minute, Refill: bucket.Sliding}, 5, 5},
		"sliding now": {bucket.Limit{Tokens: 20, Per: 5 * sec, Refill: bucket.Sliding}, 5, 20},
	} {
		ls := mustLimits(t, test.limit)
		now := b.Settle(ls, epoch).Result(ls, 0, true).Remaining
		later := b.Settle(ls, epoch.Add(10*sec)).Result(ls, 0, true).Remaining
		if now != test.now || later != test.lapsed {
			t.Errorf("%s: %d are left, %d when the lease has ended; want %d, %d", name, now, later, test.now, test.lapsed)
		}
	}
}
