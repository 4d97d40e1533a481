package bucket_test

import (
	"errors"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

func TestNewLimitsFillsIn(t *testing.T) {
	t.Parallel()
	ls := mustLimits(
		t, bucket.Limit{Tokens: 5, Per: sec}, bucket.Limit{Name: "n", Tokens: 5, Per: sec, Burst: 9}, bucket.Limit{Per: sec, Burst: 9},
	)
	if ls.Len() != 3 || !ls.Closed() {
		t.Errorf("Len(), Closed() = %d, %v, want 3, true", ls.Len(), ls.Closed())
	}
	for i, want := range []int64{5, 9, 0} {
		if got := ls.At(i).Burst; got != want {
			t.Errorf("At(%d).Burst = %d, want %d", i, got, want)
		}
	}
}

func TestNewLimitsRefuses(t *testing.T) {
	t.Parallel()
	fine := bucket.Limit{Tokens: 1, Per: sec}
	for _, test := range []struct {
		limits []bucket.Limit
		index  int
		field  string
	}{
		{nil, 0, "limits"},
		{make([]bucket.Limit, bucket.MaxLimits+1), 0, "limits"},
		{[]bucket.Limit{fine, {Tokens: -1, Per: sec}}, 1, "tokens"},
		{[]bucket.Limit{{Tokens: 1 << 53, Per: sec, Burst: 1}}, 0, "tokens"},
		{[]bucket.Limit{{Tokens: 1}}, 0, "per"},
		{[]bucket.Limit{{Tokens: 1, Per: -sec}}, 0, "per"},
		{[]bucket.Limit{{Tokens: 1, Per: us}}, 0, "per"},
		{[]bucket.Limit{{Tokens: 1, Per: sec + us}}, 0, "per"},
		{[]bucket.Limit{{Tokens: 1, Per: 1<<63 - 1}}, 0, "per"},
		{[]bucket.Limit{{Tokens: 1, Per: sec, Burst: -1}}, 0, "burst"},
		{[]bucket.Limit{{Tokens: 1, Per: sec, Burst: 1<<63 - 1}}, 0, "burst"},
		{[]bucket.Limit{fine, fine, {Tokens: 1, Per: sec, Refill: 4}}, 2, "refill"},
		{[]bucket.Limit{{Tokens: 5, Per: sec, Burst: 6, Refill: bucket.Sliding}}, 0, "burst"},
		{[]bucket.Limit{{Tokens: 5, Per: sec, Burst: 4, Refill: bucket.Sliding}}, 0, "burst"},
		{[]bucket.Limit{{Tokens: 1, Per: 24 * time.Hour, Zone: time.UTC}}, 0, "zone"},
		{[]bucket.Limit{{Tokens: 1, Per: 24 * time.Hour, Zone: time.UTC, Refill: bucket.Sliding}}, 0, "zone"},
		{[]bucket.Limit{{Tokens: 1, Per: 24 * time.Hour, Calendar: bucket.Day, Refill: bucket.Aligned}}, 0, "zone"},
		{[]bucket.Limit{{Tokens: 1, Calendar: bucket.Month, Refill: bucket.Aligned}}, 0, "zone"},
		{[]bucket.Limit{{Tokens: 1, Per: time.Hour, Zone: time.UTC, Refill: bucket.Aligned}}, 0, "per"},
		{[]bucket.Limit{{Tokens: 1, Per: 48 * time.Hour, Zone: time.UTC, Refill: bucket.Aligned}}, 0, "per"},
		{[]bucket.Limit{{Tokens: 1, Per: 24 * time.Hour, Calendar: bucket.Week, Zone: time.UTC, Refill: bucket.Aligned}}, 0, "per"},
		{[]bucket.Limit{{Tokens: 1, Calendar: 5, Zone: time.UTC, Refill: bucket.Aligned}}, 0, "per"},
		{[]bucket.Limit{{Tokens: 1, Burst: 33, Calendar: bucket.Day, Zone: time.UTC, Refill: bucket.Aligned}}, 0, "burst"},
		{[]bucket.Limit{{Tokens: 1, Per: time.Hour, Burst: 876_001, Refill: bucket.Aligned}}, 0, "burst"},
	} {
		_, err := bucket.NewLimits(test.limits...)
		var at *bucket.RangeError
		if !errors.As(err, &at) || at.Index != test.index || at.Field != test.field {
			t.Errorf("NewLimits(%+v) = %v, want a RangeError at %s of limit %d", test.limits, err, test.field, test.index)
		}
	}
}

func TestNewDebtLimitsRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		most  int64
		limit bucket.Limit
		field string
		fits  int64
	}{
		{-1, bucket.Limit{Tokens: 5, Per: sec}, "max_debt", 1<<53 - 1 - 5},
		{0, bucket.Limit{Tokens: 5, Per: sec, Refill: bucket.Aligned}, "refill", 0},
		{0, bucket.Limit{Tokens: 5, Per: sec, Refill: bucket.Sliding}, "refill", 0},
		{36_500, bucket.Limit{Tokens: 1, Per: 24 * time.Hour}, "max_debt", 36_499}, // of 100 years
		{0, bucket.Limit{Tokens: 1, Per: 365 * 24 * time.Hour}, "max_debt", 99},
		{1 << 62, bucket.Limit{Tokens: 1 << 52, Per: ms}, "max_debt", 1<<52 - 1},
		{0, bucket.Limit{Tokens: 1 << 52, Per: ms}, "max_debt", 1<<52 - 1},
	} {
		_, err := bucket.NewDebtLimits(test.most, test.limit)
		var at *bucket.RangeError
		if !errors.As(err, &at) || at.Field != test.field || at.Field == "max_debt" && test.most >= 0 && at.Most != test.fits {
			t.Errorf("NewDebtLimits(%d, %+v) = %+v, want a RangeError at %s with Most %d", test.most, test.limit, err, test.field, test.fits)
		}
		if test.fits == 0 {
			continue
		}
		if _, err := bucket.NewDebtLimits(test.fits, test.limit); test.most >= 0 && err != nil {
			t.Errorf("NewDebtLimits(%d, %+v) = %v, want no error: it is the most", test.fits, test.limit, err)
		}
	}
}

// TestDebtTicks has the debt, not the burst, ask for ticks of 1 ms.
func TestDebtTicks(t *testing.T) {
	t.Parallel()
	l := bucket.Limit{Tokens: 3, Per: 7 * sec, Burst: 100}
	for most, want := range map[int64]int64{0: 1, 1_300_000_000: 1000} {
		ls, err := bucket.NewDebtLimits(most, l)
		if err != nil || ls.Terms(0).Tick != want {
			t.Errorf("NewDebtLimits(%d, %+v) = %v, %v, want ticks of %d µs", most, l, ls, err, want)
		}
	}
}

func TestRangeErrorText(t *testing.T) {
	t.Parallel()
	_, err := bucket.NewLimits(bucket.Limit{Tokens: 1, Per: 24 * time.Hour, Burst: 36501})
	if got, want := err.Error(), "burst is 36501, want 1 to 36500 at this rate"; got != want {
		t.Errorf("Error() = %q, want %q: a hundred years of days", got, want)
	}
}

// largest is the most that a limit may hold, by the rule: burst × (period in
// ticks ÷ gcd(tokens, period in ticks)) < 2^53 in ticks of 1 ms, those of 1 µs
// being stricter; and an empty bucket fills within 100 years.
func largest(l bucket.Limit) int64 {
	gcd := func(a, b int64) *big.Int { return new(big.Int).GCD(nil, nil, big.NewInt(a), big.NewInt(b)) }
	ticks := l.Per.Milliseconds()
	unit := new(big.Int).Div(big.NewInt(ticks), gcd(l.Tokens, ticks))
	if l.Refill == bucket.Aligned {
		unit.SetInt64(1) // no part of a token is ever there
	}
	most := new(big.Int).Div(big.NewInt(1<<53-1), unit)
	century := big.NewInt(100 * 365 * 24 * 3600 * 1000)
	fill := new(big.Int).Div(new(big.Int).Mul(century, big.NewInt(l.Tokens)), big.NewInt(ticks))
	if l.Refill != bucket.Greedy {
		fill.Mul(new(big.Int).Div(century, big.NewInt(ticks)), big.NewInt(l.Tokens))
	}
	if fill.Cmp(most) < 0 {
		most = fill
	}
	return most.Int64()
}

func TestLargestBurst(t *testing.T) {
	t.Parallel()
	for _, l := range []bucket.Limit{
		{Tokens: 1, Per: ms},
		{Tokens: 1, Per: 24 * time.Hour},
		{Tokens: 3, Per: 7 * sec},
		{Tokens: 1_000_003, Per: 24 * time.Hour},
		{Tokens: 1 << 52, Per: 1001 * ms},
		{Tokens: 1<<53 - 1, Per: 36500 * 24 * time.Hour},
		{Tokens: 1<<53 - 1, Per: ms},
		{Tokens: 999_999_999_989, Per: 999_983 * ms},
		{Tokens: 7, Per: 36499 * 24 * time.Hour},
	} {
		for _, l.Refill = range []bucket.Refill{bucket.Greedy, bucket.Interval, bucket.Aligned} {
			most := largest(l)
			l.Burst = most + 1
			_, err := bucket.NewLimits(l)
			var at *bucket.RangeError
			if !errors.As(err, &at) || at.Field != "burst" || at.Most != most {
				t.Errorf("NewLimits(%+v) = %+v, want a RangeError of burst with Most %d", l, err, most)
			}
			l.Burst = most
			ls, err := bucket.NewLimits(l)
			if err != nil {
				t.Errorf("NewLimits(%+v) = %v, want no error: it is the largest", l, err)
				continue
			}
			drainAndFill(t, ls)
		}
	}
}

// drainAndFill holds the largest numbers to the plainest law.
func drainAndFill(t *testing.T, ls *bucket.Limits) {
	t.Helper()
	l := ls.At(0)
	b, r := bucket.Bucket{}.Take(ls, epoch, l.Burst)
	if !r.Allowed || r.Remaining != 0 || r.FullIn <= 0 {
		t.Errorf("%+v: Take(burst) = %+v, want it drained", l, r)
	}
	if _, early := b.Take(ls, epoch.Add(r.FullIn-us), l.Burst); early.Allowed {
		t.Errorf("%+v: Take(burst) a microsecond before full = %+v, want denied", l, early)
	}
	_, again := b.Take(ls, epoch.Add(r.FullIn), l.Burst)
	if l.Refill == bucket.Aligned {
		again.FullIn = r.FullIn // the first period had begun before
	}
	if again != r {
		t.Errorf("%+v: Take(burst) when full = %+v, want %+v", l, again, r)
	}
}

// FuzzNewLimits wants any numbers refused with a reason or counted right, and
// what a refusal calls the largest accepted.
func FuzzNewLimits(f *testing.F) {
	f.Add(int64(5), int64(10*sec), int64(0), uint8(0))
	f.Add(int64(1<<52), int64(ms), int64(1<<53-1), uint8(0))
	f.Add(int64(3), int64(7*sec), int64(1_300_000_000), uint8(0))
	f.Add(int64(1_000_003), int64(24*time.Hour), int64(1<<62), uint8(1))
	f.Add(int64(1<<53), int64(36500*24*time.Hour), int64(1), uint8(1))
	f.Add(int64(-1), int64(1), int64(-1), uint8(4))
	f.Add(int64(77), int64(10*sec), int64(-44), uint8(0))
	f.Fuzz(func(t *testing.T, tokens, per, burst int64, refill uint8) {
		l := bucket.Limit{Tokens: tokens, Per: time.Duration(per), Burst: burst, Refill: bucket.Refill(refill)}
		ls, err := bucket.NewLimits(l)
		var at *bucket.RangeError
		switch {
		case errors.As(err, &at) && at.Field == "burst":
			l.Burst = at.Most
			drainAndFill(t, mustLimits(t, l))
			l.Burst++
			if _, err := bucket.NewLimits(l); err == nil {
				t.Errorf("NewLimits(%+v) = no error, want one: %d was said to be the largest burst", l, at.Most)
			}
		case err == nil && tokens > 0:
			drainAndFill(t, ls)
		}
	})
}

func TestLargestTokens(t *testing.T) {
	t.Parallel()
	_, err := bucket.NewLimits(bucket.Limit{Tokens: 1 << 53, Per: sec, Burst: 1})
	var at *bucket.RangeError
	if !errors.As(err, &at) || at.Most != 1<<53-1 {
		t.Fatalf("NewLimits(2^53 tokens) = %+v, want Most 2^53-1", err)
	}
	mustLimits(t, bucket.Limit{Tokens: at.Most, Per: sec, Burst: 1})
}

// TestTicks wants time counted in µs as long as that is exact.
func TestTicks(t *testing.T) {
	t.Parallel()
	l := bucket.Limit{Tokens: 3, Per: 7 * sec} // a token is 7,000,000 parts
	for _, test := range []struct{ burst, tick, unit int64 }{
		{(1<<53 - 1) / 7_000_000, 1, 7_000_000},
		{(1<<53-1)/7_000_000 + 1, 1000, 7000},
	} {
		l.Burst = test.burst
		want := bucket.Terms{PerMS: 7000, Tokens: 3, Burst: test.burst, Most: test.burst, Tick: test.tick, Unit: test.unit, Step: 3, Slot: 109_375}
		if diff := cmp.Diff(want, mustLimits(t, l).Terms(0)); diff != "" {
			t.Errorf("Terms of %+v (-want +got):\n%s", l, diff)
		}
	}
}

func TestTermsNames(t *testing.T) {
	t.Parallel()
	ls := mustLimits(
		t, bucket.Limit{Per: sec}, bucket.Limit{Name: "a", Tokens: 1, Per: sec}, bucket.Limit{Name: "b", Tokens: 1, Per: sec, Refill: bucket.Interval},
	)
	none, a, b := ls.Terms(0), ls.Terms(1), ls.Terms(2)
	if none.Name != 0 || a.Name == 0 || a.Name == b.Name {
		t.Errorf("Terms().Name = %d, %d, %d, want 0 and two others", none.Name, a.Name, b.Name)
	}
	if none.Step != 0 || b.Refill != bucket.Interval {
		t.Errorf("Terms() = %+v, %+v, want Step 0 for a rate of 0, and Interval", none, b)
	}
}

func TestRefillString(t *testing.T) {
	t.Parallel()
	for refill, want := range map[bucket.Refill]string{bucket.Greedy: "greedy", bucket.Interval: "interval", bucket.Aligned: "aligned", bucket.Sliding: "sliding", 9: "refill(9)"} {
		if got := refill.String(); got != want {
			t.Errorf("Refill(%d).String() = %q, want %q", uint8(refill), got, want)
		}
	}
}

// Draining limits take what there is, whatever else there is in the call, and
// leave a bucket that the limits themselves go on from.
func TestDraining(t *testing.T) {
	t.Parallel()
	epoch := time.UnixMicro(1_700_000_000_000_000)
	for _, refill := range []bucket.Refill{bucket.Greedy, bucket.Interval, bucket.Aligned, bucket.Sliding} {
		ls, err := bucket.NewLimits(bucket.Limit{Tokens: 10, Per: time.Hour, Refill: refill})
		if err != nil {
			t.Fatal(err)
		}
		var b bucket.Bucket
		for i, step := range []struct {
			limits *bucket.Limits
			cost   int64
			left   int64
		}{
			{ls, 4, 6},
			{ls.Draining(), 3, 3},
			{ls, 1, 2},
			{ls.Draining(), 5, 0}, // of which two were there
			{ls, 1, 0},
			{ls, -2, 2},
			{ls, 2, 0},
		} {
			next, got := b.Take(step.limits, epoch, step.cost)
			if got.Remaining != step.left {
				t.Errorf("%v, step %d: Take(%d) = %+v, want remaining %d", refill, i, step.cost, got, step.left)
			}
			b = next
		}
	}
}

// A bucket is the same an hour sooner or later.
func TestAsOf(t *testing.T) {
	t.Parallel()
	epoch := time.UnixMicro(1_700_000_000_000_000)
	for _, refill := range []bucket.Refill{bucket.Greedy, bucket.Interval, bucket.Sliding} {
		ls, err := bucket.NewLimits(bucket.Limit{Tokens: 10, Per: time.Minute, Refill: refill})
		if err != nil {
			t.Fatal(err)
		}
		b, _ := bucket.Bucket{}.Take(ls, epoch, 3)
		b, _ = b.Take(ls, epoch.Add(7*time.Second), 2)
		for _, by := range []time.Duration{-time.Hour, 0, time.Hour} {
			moved := b.AsOf(epoch.Add(7*time.Second + by))
			for _, later := range []time.Duration{0, time.Second, 58 * time.Second, time.Minute} {
				at := epoch.Add(7*time.Second + later)
				_, want := b.Take(ls, at, 6)
				if _, got := moved.Take(ls, at.Add(by), 6); got != want {
					t.Errorf("%v moved by %v: Take(6) %v later = %+v, want %+v", refill, by, later, got, want)
				}
			}
		}
	}
}
