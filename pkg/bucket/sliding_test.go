package bucket_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// An exactLog keeps every charge that was made, at its own moment.
type exactLog []admission

// sum is what was taken in the window that ends with now and begins after
// now-per.
func (e exactLog) sum(now time.Time, per time.Duration) (sum int64) {
	for _, a := range e {
		if now.Sub(a.at) < per {
			sum += a.cost
		}
	}
	return sum
}

// refunded gives back what was taken last, of what the limit still counts.
func (e exactLog) refunded(cost int64) exactLog {
	for len(e) > 0 && cost > 0 {
		last := &e[len(e)-1]
		back := min(cost, last.cost)
		last.cost -= back
		cost -= back
		if last.cost == 0 {
			e = e[:len(e)-1]
		}
	}
	return e
}

// TestSlidingIsNeverLooser plays random charges on a sliding limit and on an
// exact log: what the limit allows, the log has room for; what it denies, the
// log would deny if its window were a 64th longer. Its own log stays short.
func TestSlidingIsNeverLooser(t *testing.T) {
	t.Parallel()
	for _, l := range []bucket.Limit{
		{Tokens: 1, Per: ms, Refill: bucket.Sliding},
		{Tokens: 10, Per: 10 * sec, Refill: bucket.Sliding},
		{Tokens: 1000, Per: 777 * ms, Refill: bucket.Sliding},
		{Tokens: 300, Per: time.Hour, Refill: bucket.Sliding},
	} {
		for seed := range uint64(10) {
			slidingRun(t, l, rand.New(rand.NewPCG(seed, 5)))
		}
	}
}

func slidingRun(t *testing.T, l bucket.Limit, rnd *rand.Rand) {
	t.Helper()
	var (
		b      bucket.Bucket
		exact  exactLog
		now    = epoch
		ls     = mustLimits(t, l)
		longer = l.Per + time.Duration(slot(l)-1)*us
		pace   = []int64{int64(l.Per) / 10 / max(l.Tokens, 1), int64(l.Per) / 100, int64(l.Per) / 3}[rnd.IntN(3)]
	)
	for range 3000 {
		now = now.Add(time.Duration(rnd.Int64N(pace + 2000)).Truncate(us))
		cost := 1 + rnd.Int64N(max(l.Tokens/20, 1))
		if rnd.IntN(20) == 0 {
			cost = -cost
		}
		for len(exact) > 0 && now.Sub(exact[0].at) > 2*l.Per {
			exact = exact[1:]
		}
		next, r := b.Take(ls, now, cost)
		b = next
		switch sum := exact.sum(now, l.Per); {
		case cost < 0:
			// What has left the window cannot be given back.
			exact = exact.refunded(min(-cost, exact.sum(now, longer)))
		case r.Allowed && sum+cost > l.Tokens:
			t.Fatalf("%+v: Take(%d) at epoch+%v = allowed, want denied: %d were taken in the last period", l, cost, now.Sub(epoch), sum)
		case r.Allowed:
			exact = append(exact, admission{now, cost})
		case exact.sum(now, longer)+cost <= l.Tokens:
			t.Fatalf("%+v: Take(%d) at epoch+%v = denied, want allowed: %d were taken in a period and a 64th", l, cost, now.Sub(epoch), exact.sum(now, longer))
		}
		for _, p := range b.Settle(ls, now).Parts(ls) {
			if len(p.Log) > 65 {
				t.Fatalf("%+v: a log of %d entries, want at most 65", l, len(p.Log))
			}
		}
	}
}

// TestSlidingIsExactApart wants no strictness at all where charges lie a 64th
// of a period apart.
func TestSlidingIsExactApart(t *testing.T) {
	t.Parallel()
	l := bucket.Limit{Tokens: 20, Per: 64 * sec, Refill: bucket.Sliding}
	ls, rnd := mustLimits(t, l), rand.New(rand.NewPCG(6, 5))
	var (
		b     bucket.Bucket
		exact exactLog
		now   = epoch
	)
	for range 5000 {
		now = now.Add(sec + time.Duration(rnd.Int64N(int64(3*sec))).Truncate(us))
		cost := 1 + rnd.Int64N(4)
		next, r := b.Take(ls, now, cost)
		b = next
		if want := exact.sum(now, l.Per)+cost <= l.Tokens; r.Allowed != want {
			t.Fatalf("Take(%d) at epoch+%v = %+v, want allowed %v: %d were taken in the last period", cost, now.Sub(epoch), r, want, exact.sum(now, l.Per))
		}
		if r.Allowed {
			exact = append(exact, admission{now, cost})
		}
	}
}

// TestSlidingLogIsBounded changes the period often, and moves the clock back: the log stays as short as it would be under one.
func TestSlidingLogIsBounded(t *testing.T) {
	t.Parallel()
	var versions []*bucket.Limits
	for _, per := range []time.Duration{64 * ms, 900 * ms, sec, 1100 * ms, 2 * sec, time.Hour} {
		versions = append(versions, mustLimits(t, bucket.Limit{Tokens: 1 << 40, Per: per, Refill: bucket.Sliding}))
	}
	rnd := rand.New(rand.NewPCG(7, 5))
	var b bucket.Bucket
	now, longest, ls := epoch, 0, versions[0]
	for range 50_000 {
		now = now.Add(time.Duration(rnd.Int64N(int64(20*ms))).Truncate(us) - 100*us)
		if rnd.IntN(100) == 0 {
			ls = versions[rnd.IntN(len(versions))]
		}
		b, _ = b.Take(ls, now, 1)
		for _, p := range b.Parts(ls) {
			longest = max(longest, len(p.Log))
		}
	}
	if longest > 66 || longest < 20 {
		t.Errorf("the longest log had %d entries, want at most 66, and a run that makes many", longest)
	}
}
