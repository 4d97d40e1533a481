package bucket_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

const (
	us  = time.Microsecond
	ms  = time.Millisecond
	sec = time.Second
)

// yes and no are results by the first limit.
func yes(left int64, full time.Duration) bucket.Result {
	return bucket.Result{Allowed: true, Remaining: left, FullIn: full}
}

func no(left int64, retry, full time.Duration) bucket.Result {
	return bucket.Result{Remaining: left, RetryAfter: retry, FullIn: full}
}

func by(limit int, r bucket.Result) bucket.Result {
	r.Limit = limit
	return r
}

// A step is a charge at a moment since epoch, under limits of its own if it
// has any.
type step struct {
	at     time.Duration
	limits []bucket.Limit
	cost   int64
	want   bucket.Result
}

func play(t *testing.T, limits []bucket.Limit, steps []step) {
	t.Helper()
	var (
		b  bucket.Bucket
		ls *bucket.Limits
	)
	for i, s := range steps {
		if s.limits != nil {
			limits = s.limits
		}
		if ls == nil || s.limits != nil {
			ls = mustLimits(t, limits...)
		}
		next, got := b.Take(ls, epoch.Add(s.at), s.cost)
		if diff := cmp.Diff(s.want, got); diff != "" {
			t.Errorf("step %d, at %v: Take(%+v, %d) (-want +got):\n%s", i, s.at, limits, s.cost, diff)
		}
		b = next
	}
}

var (
	greedy   = bucket.Limit{Tokens: 5, Per: 10 * sec}
	interval = bucket.Limit{Tokens: 5, Per: 10 * sec, Refill: bucket.Interval}
)

var takeTests = []struct {
	name   string
	limits []bucket.Limit
	steps  []step
}{
	{"greedy drained", []bucket.Limit{greedy}, []step{
		{0, nil, 5, yes(0, 10*sec)},
		{0, nil, 1, no(0, 2*sec, 10*sec)},
		{1500 * ms, nil, 1, no(0, 500*ms, 8500*ms)},
		{2*sec - us, nil, 1, no(0, us, 8*sec+us)},
		{2 * sec, nil, 0, yes(1, 8*sec)},
		{10*sec - us, nil, 5, no(4, us, us)},
		{10 * sec, nil, 5, yes(0, 10*sec)},
	}},
	{"interval drained", []bucket.Limit{interval}, []step{
		{0, nil, 5, yes(0, 10*sec)},
		{2 * sec, nil, 1, no(0, 8*sec, 8*sec)},
		{10*sec - us, nil, 1, no(0, us, us)},
		{10 * sec, nil, 5, yes(0, 10*sec)},
	}},
	{"interval: a burst of more than the rate", []bucket.Limit{{Tokens: 2, Per: sec, Burst: 5, Refill: bucket.Interval}}, []step{
		{0, nil, 5, yes(0, 3*sec)},
		{sec, nil, 0, yes(2, 2*sec)},
		{2500 * ms, nil, 1, yes(3, 500*ms)}, // the period goes on
		{3 * sec, nil, 0, yes(5, 0)},
		{3200 * ms, nil, 1, yes(4, sec)}, // it was full: another begins
	}},
	{"interval: a charge just before the period ends", []bucket.Limit{{Tokens: 1_000_003, Per: 24 * time.Hour, Refill: bucket.Interval}}, []step{
		{0, nil, 1, yes(1_000_002, 24*time.Hour)},
		{24*time.Hour - us, nil, 1, yes(1_000_001, us)},
	}},
	{"the rate of more than a tick", []bucket.Limit{{Tokens: 3_000_000, Per: sec}}, []step{
		{0, nil, 3_000_000, yes(0, sec)},
		{us, nil, 4, no(3, us, sec-us)},
		{us, nil, 3, yes(0, sec)},
	}},
	{"a third of a token", []bucket.Limit{{Tokens: 3, Per: sec, Burst: 2}}, []step{
		{0, nil, 2, yes(0, 666_667*us)},
		{333_333 * us, nil, 1, no(0, us, 333_334*us)},
		{333_334 * us, nil, 1, yes(0, 666_666*us)}, // two thirds of a µs are kept
		{666_667 * us, nil, 1, yes(0, 666_667*us)},
		{sec - us, nil, 1, no(0, us, 333_335*us)},
		{sec, nil, 1, yes(0, 666_667*us)},
	}},
	{"the longest wait decides", []bucket.Limit{{Tokens: 2, Per: sec}, {Tokens: 3, Per: time.Minute}, {Tokens: 2, Per: time.Hour, Burst: 3}}, []step{
		{0, nil, 2, yes(0, sec)},
		{0, nil, 2, by(2, no(1, 30*time.Minute, time.Hour))},
		{0, nil, 3, no(0, bucket.Never, sec)},
		{sec, nil, 1, by(2, yes(0, 5399*sec))},
	}},
	{"the first of equals decides", []bucket.Limit{greedy, greedy}, []step{
		{0, nil, 6, no(5, bucket.Never, 0)},
		{0, nil, 5, yes(0, 10*sec)},
		{0, nil, 1, no(0, 2*sec, 10*sec)},
	}},
	{"rate of 0", []bucket.Limit{greedy, {Per: sec, Burst: 7}}, []step{
		{0, nil, 1, by(1, no(0, bucket.Never, 0))},
		{0, nil, 0, by(1, yes(0, 0))},
		{0, nil, -1, by(1, yes(0, 0))},
	}},
	{"costs beyond counting", []bucket.Limit{{Tokens: 1 << 52, Per: ms, Burst: 1<<53 - 1}}, []step{
		{0, nil, 1<<63 - 1, no(1<<53-1, bucket.Never, 0)},
		{0, nil, 1 << 53, no(1<<53-1, bucket.Never, 0)},
		{0, nil, 1<<53 - 1, yes(0, 2*ms)},
		{0, nil, 1<<63 - 1, no(0, bucket.Never, 2*ms)},
		{ms, nil, -1 << 63, yes(1<<53-1, 0)},
	}},
	{"a refund that fills one of two", []bucket.Limit{interval, {Tokens: 100, Per: time.Hour}}, []step{
		{0, nil, 5, yes(0, 10*sec)},
		{10 * sec, nil, 3, yes(2, 10*sec)},
		{14 * sec, nil, -3, yes(5, 0)},
		{14 * sec, nil, 2, yes(3, 10*sec)}, // a period begins
	}},
	{"the clock goes back", []bucket.Limit{interval}, []step{
		{time.Hour, nil, 5, yes(0, 10*sec)},
		{time.Hour + 4*sec, nil, -1, yes(1, 6*sec)},
		{0, nil, 0, yes(1, 6*sec)}, // a look leaves it where it is
		{time.Hour + 5*sec, nil, 0, yes(1, 5*sec)},
		{0, nil, 2, no(1, 6*sec, 6*sec)},
		{6*sec - us, nil, 2, no(1, us, us)},
		{6 * sec, nil, 2, yes(3, 10*sec)},
	}},
}

func TestTake(t *testing.T) {
	t.Parallel()
	for _, test := range takeTests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			play(t, test.limits, test.steps)
		})
	}
}

var five = []bucket.Limit{greedy}

var changeTests = []struct {
	name  string
	steps []step
}{
	{"raised burst", []step{
		{0, five, 5, yes(0, 10*sec)},
		{sec, []bucket.Limit{{Tokens: 5, Per: 10 * sec, Burst: 7}}, 3, no(2, sec, 9*sec)}, // the half token counts
		{2 * sec, nil, 3, yes(0, 14*sec)},
	}},
	{"raised rate", []step{
		{0, five, 5, yes(0, 10*sec)},
		{sec, []bucket.Limit{{Tokens: 50, Per: 10 * sec}}, 50, yes(0, 10*sec)},
	}},
	{"lowered", []step{
		{0, []bucket.Limit{{Tokens: 100, Per: time.Minute}}, 100, yes(0, time.Minute)},
		{0, five, 1, no(0, 2*sec, 10*sec)},
		{9 * sec, nil, 1, yes(3, 3*sec)},
	}},
	{"lowered and raised with no charge between", []step{
		{0, []bucket.Limit{{Tokens: 100, Per: time.Minute}}, 100, yes(0, time.Minute)},
		{0, five, 1, no(0, 2*sec, 10*sec)},
		{0, []bucket.Limit{{Tokens: 100, Per: time.Minute}}, 1, no(0, 600*ms, time.Minute)},
	}},
	{"full is full under any limit", []step{
		{0, five, 5, yes(0, 10*sec)},
		{10*sec - us, []bucket.Limit{{Tokens: 5, Per: time.Hour}}, 1, no(0, 720*sec-10*sec+us, 3590*sec+us)},
		{10 * sec, nil, 5, yes(0, time.Hour)},
	}},
	{"another period begins at the last charge", []step{
		{0, []bucket.Limit{{Tokens: 5, Per: 10 * sec, Refill: bucket.Interval}}, 3, yes(2, 10*sec)},
		{4 * sec, nil, 2, yes(0, 6*sec)},
		{5 * sec, []bucket.Limit{{Tokens: 5, Per: 3 * sec, Refill: bucket.Interval}}, 1, no(0, 2*sec, 2*sec)},
		{7 * sec, nil, 1, yes(4, 3*sec)},
	}},
	{"the same period with another rate goes on", []step{
		{0, []bucket.Limit{{Tokens: 5, Per: 10 * sec, Refill: bucket.Interval}}, 3, yes(2, 10*sec)},
		{4 * sec, nil, 2, yes(0, 6*sec)},
		{5 * sec, []bucket.Limit{{Tokens: 2, Per: 10 * sec, Burst: 5, Refill: bucket.Interval}}, 1, no(0, 5*sec, 25*sec)},
		{10*sec - us, nil, 1, no(0, us, 20*sec+us)},
	}},
	{"greedy to interval, and back", []step{
		{0, five, 5, yes(0, 10*sec)},
		{sec, []bucket.Limit{{Tokens: 5, Per: 10 * sec, Refill: bucket.Interval}}, 1, no(0, 9*sec, 9*sec)},
		{2 * sec, five, 1, yes(0, 10*sec)},
	}},
	{"from ticks of 1 ms to 1 µs", []step{
		{0, []bucket.Limit{{Tokens: 3, Per: 7 * sec, Burst: 1_300_000_000}}, 2, yes(1_299_999_998, 4667*ms)},
		{2332 * ms, nil, 0, yes(1_299_999_998, 2335*ms)},
		{2332 * ms, nil, 1, yes(1_299_999_997, 4668*ms)},
		// 2332 ms of the next token are not carried over: it is late, not early.
		{2333 * ms, []bucket.Limit{{Tokens: 3, Per: 7 * sec, Burst: 3}}, 1, no(0, 2_332_334*us, 6_999*ms)},
	}},
}

func TestTakeUnderChangedLimits(t *testing.T) {
	t.Parallel()
	for _, test := range changeTests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			play(t, nil, test.steps)
		})
	}
}

func TestTakeMatchesLimits(t *testing.T) {
	t.Parallel()
	// 3 are spent under old.
	limit := func(name string, per time.Duration) bucket.Limit {
		return bucket.Limit{Name: name, Tokens: 9, Per: per}
	}
	for _, test := range []struct {
		name     string
		old, now []bucket.Limit
		spent    []int64
	}{
		{"place", []bucket.Limit{limit("", sec), limit("", ms)}, []bucket.Limit{limit("", 2*sec), limit("", 2*ms)}, []int64{3, 3}},
		{"a new one is full", []bucket.Limit{limit("", sec)}, []bucket.Limit{limit("", sec), limit("", time.Hour)}, []int64{3, 0}},
		{"a new one before it", []bucket.Limit{limit("", sec)}, []bucket.Limit{limit("", time.Hour), limit("", sec)}, []int64{0, 3}},
		{"name before period", []bucket.Limit{limit("a", sec)}, []bucket.Limit{limit("", sec), limit("a", time.Hour)}, []int64{0, 3}},
		{"renamed", []bucket.Limit{limit("a", sec)}, []bucket.Limit{limit("b", time.Hour), limit("c", sec)}, []int64{0, 3}},
		{"gone", []bucket.Limit{limit("a", sec), limit("b", time.Hour)}, []bucket.Limit{limit("b", time.Minute)}, []int64{3}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b, _ := bucket.Bucket{}.Take(mustLimits(t, test.old...), epoch, 3)
			ls := mustLimits(t, test.now...)
			var got []int64
			for _, p := range b.Settle(ls, epoch).Parts(ls) {
				got = append(got, p.Spent)
			}
			if diff := cmp.Diff(test.spent, got); diff != "" {
				t.Errorf("Settle(%+v) of 3 spent under %+v: spent (-want +got):\n%s", test.now, test.old, diff)
			}
		})
	}
}

func TestBucketAt(t *testing.T) {
	t.Parallel()
	ls := mustLimits(t, bucket.Limit{Tokens: 3, Per: sec})
	b, _ := bucket.Bucket{}.Take(ls, epoch, 1)
	charged, full := b.At()
	if !charged.Equal(epoch) || !full.Equal(epoch.Add(334*ms)) {
		t.Errorf("At() = %v, %v, want %v and 334ms later: a third of a second in whole ms", charged, full, epoch)
	}
	if b.Full() || b.Ahead(epoch) || !b.Ahead(epoch.Add(-us)) {
		t.Errorf("Full, Ahead(same), Ahead(before) = %v, %v, %v, want false, false, true", b.Full(), b.Ahead(epoch), b.Ahead(epoch.Add(-us)))
	}
	var zero bucket.Bucket
	if charged, full := zero.At(); !charged.IsZero() || !full.IsZero() || !zero.Full() || zero.Ahead(epoch.Add(-us)) {
		t.Errorf("zero Bucket: At() = %v, %v, Full() = %v, want zero times and true", charged, full, zero.Full())
	}
}

func TestSpendTakesWhatIsThere(t *testing.T) {
	t.Parallel()
	ls := mustLimits(t, bucket.Limit{Tokens: 5, Per: 10 * sec})
	for _, cost := range []int64{5, 6, 1<<63 - 1} {
		if got := (bucket.Bucket{}).Spend(ls, epoch, 1).Spend(ls, epoch, cost).Result(ls, cost, true); got != yes(0, 10*sec) {
			t.Errorf("Spend(%d).Result() = %+v, want all 5 taken", cost, got)
		}
	}
}

func TestZeroLimits(t *testing.T) {
	t.Parallel()
	b, got := bucket.Bucket{}.Take(&bucket.Limits{}, epoch, 3)
	if !got.Allowed || !b.Full() {
		t.Errorf("Take(no limits) = %+v, %+v, want a full bucket and allowed", b, got)
	}
}
