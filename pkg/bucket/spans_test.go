package bucket_test

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// TestSlowTicks plays limits that are counted in ticks of 1 ms and holds them
// to: never early, and less than 1 ms late.
func TestSlowTicks(t *testing.T) {
	t.Parallel()
	for seed := range uint64(15) {
		for _, l := range []bucket.Limit{
			{Tokens: 3, Per: 7 * sec, Burst: 1_300_000_000},
			{Tokens: 7_000_003, Per: 13 * sec, Burst: 600_000_000_000},
			{Tokens: 999_983, Per: 24 * time.Hour, Burst: 1_000_000},
			{Tokens: 333_331, Per: 1_000_003 * ms, Burst: 5_000_000_000},
		} {
			slowRun(t, l, rand.New(rand.NewPCG(seed, 1)))
		}
	}
}

func slowRun(t *testing.T, l bucket.Limit, rnd *rand.Rand) {
	t.Helper()
	ls := mustLimits(t, l)
	if tick := ls.Terms(0).Tick; tick != 1000 {
		t.Fatalf("Terms(%+v).Tick = %d, want 1000", l, tick)
	}
	var b bucket.Bucket
	o, now, last := oracle{}, epoch, bucket.Result{}
	for range 300 {
		now = now.Add(slowWait(l, rnd, last))
		lacks := o.lacking(plan{limits: []bucket.Limit{l}}, now.UnixMicro())
		settled := b.Settle(ls, now)
		got := settled.Result(ls, 0, true).Remaining
		most := left(l, lacks[0])
		late := new(big.Rat).Mul(rat(1000), rate(l))
		least := left(l, lack{tokens: late.Add(late, lacks[0].tokens)})
		if got < least || got > most {
			t.Fatalf("%+v at epoch+%v: %d tokens remain, want %d, or %d as 1 ms ago", l, now.Sub(epoch), got, most, least)
		}
		// What the code denied is not asked of the oracle: it may be late.
		cost := 1 + rnd.Int64N(2)
		if rnd.IntN(100) == 0 {
			cost = got
		}
		next, r := b.Take(ls, now, cost)
		laws(t, ls, now, cost, b, next, r)
		if r.Allowed && cost > 0 {
			o.spend(plan{limits: []bucket.Limit{l}}, lacks, now.UnixMicro(), cost)
		}
		b, last = next, r
	}
}

// slowWait is mostly within a few ticks of where a token comes or the bucket
// is full.
func slowWait(l bucket.Limit, rnd *rand.Rand, last bucket.Result) time.Duration {
	token := l.Per / time.Duration(l.Tokens)
	jitter := time.Duration(rnd.Int64N(2500)) * us
	switch rnd.IntN(5) {
	case 0:
		return jitter
	case 1:
		return token.Truncate(us) + jitter
	case 2:
		return max(min(last.FullIn, time.Hour)-jitter, 0)
	case 3:
		return max(min(last.FullIn, token*5).Truncate(us)-jitter, 0)
	default:
		return 0
	}
}

// TestSpans holds what was admitted in every span against the burst and what
// came in that span.
func TestSpans(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		for _, l := range []bucket.Limit{
			{Tokens: 5, Per: 10 * sec},
			{Tokens: 7, Per: 3 * sec, Burst: 4},
			{Tokens: 3, Per: sec, Burst: 50},
			{Tokens: 3, Per: 7 * sec, Burst: 1_300_000_000},
			{Tokens: 5, Per: 10 * sec, Refill: bucket.Interval},
			{Tokens: 4, Per: sec, Burst: 11, Refill: bucket.Interval},
		} {
			spans(t, l, admissions(mustLimits(t, l), rnd))
		}
	}
}

type admission struct {
	at   time.Time
	cost int64
}

// admissions charges as much as there is, at moments that tempt.
func admissions(ls *bucket.Limits, rnd *rand.Rand) []admission {
	var (
		b    bucket.Bucket
		list []admission
		r    bucket.Result
		now  = epoch
	)
	for range 200 {
		now = now.Add(slowWait(ls.At(0), rnd, r))
		cost := 1 + rnd.Int64N(4)
		if rnd.IntN(4) == 0 && ls.At(0).Burst < 100 {
			cost = max(b.Settle(ls, now).Result(ls, 0, true).Remaining, 1)
		}
		b, r = b.Take(ls, now, cost)
		if r.Allowed {
			list = append(list, admission{now, cost})
		}
	}
	return list
}

func spans(t *testing.T, l bucket.Limit, list []admission) {
	t.Helper()
	for i := range list {
		var sum int64
		for _, a := range list[i:] {
			sum += a.cost
			span := a.at.Sub(list[i].at)
			if float64(sum-burst(l)) < 0.99*float64(l.Tokens)*float64(span)/float64(l.Per) && l.Refill == bucket.Greedy {
				continue // by far
			}
			came := new(big.Rat).Mul(rat(span.Microseconds()), rate(l))
			if l.Refill == bucket.Interval {
				came = rat(l.Tokens * int64(span/l.Per+1))
			}
			if most := came.Add(came, rat(burst(l))); rat(sum).Cmp(most) > 0 {
				t.Fatalf("%+v: %d tokens within %v, want at most %s", l, sum, span, most.FloatString(6))
			}
		}
	}
}
