package storetest

import (
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

func greedy(t *testing.T, h Harness) {
	playOne(t, h, limits(t, fivePer10s(bucket.Greedy)), []step{
		{0, 1, yes(4, 2*sec)},
		{0, 4, yes(0, 10*sec)},
		{0, 1, no(0, 2*sec, 10*sec)},
		{1500 * ms, 1, no(0, 500*ms, 8500*ms)},
		{2*sec - us, 1, no(0, us, 8*sec+us)},
		{2 * sec, 1, yes(0, 10*sec)},
		{7 * sec, 3, no(2, sec, 5*sec)},
		{8 * sec, 3, yes(0, 10*sec)},
		{18*sec - us, 5, no(4, us, us)},
		{18 * sec, 5, yes(0, 10*sec)},
	})
}

func interval(t *testing.T, h Harness) {
	playOne(t, h, limits(t, fivePer10s(bucket.Interval)), []step{
		{0, 5, yes(0, 10*sec)},
		{2 * sec, 1, no(0, 8*sec, 8*sec)},
		{10*sec - us, 1, no(0, us, us)},
		{10 * sec, 5, yes(0, 10*sec)},
		// Full again since 20 s: the next period begins with the charge.
		{33 * sec, 1, yes(4, 10*sec)},
		{37 * sec, 4, yes(0, 6*sec)},
		{43 * sec, 1, yes(4, 10*sec)},
	})
}

func intervalTwice(t *testing.T, h Harness) {
	l := fivePer10s(bucket.Interval)
	l.Burst = 8
	playOne(t, h, limits(t, l), []step{
		{0, 8, yes(0, 20*sec)},
		{10*sec - us, 1, no(0, us, 10*sec+us)},
		{10 * sec, 1, yes(4, 10*sec)},
		{15 * sec, 4, yes(0, 15*sec)},
		{15 * sec, 6, no(0, 15*sec, 15*sec)},
		{20 * sec, 6, no(5, 10*sec, 10*sec)},
		{30 * sec, 8, yes(0, 20*sec)},
	})
}

// slow is a limit so large that its tokens, one in 2333⅓ ms, are counted in
// ticks of 1 ms from the charge that took from a full bucket.
var slow = bucket.Limit{Tokens: 3, Per: 7 * time.Second, Burst: 1_300_000_000}

func slowTicks(t *testing.T, h Harness) {
	const full = 3_033_333_333_334 * ms // 1.3e9 × 7000 ÷ 3, rounded up
	playOne(t, h, limits(t, slow), []step{
		{0, slow.Burst, yes(0, full)},
		{2334*ms - us, 1, no(0, us, full-2334*ms+us)},
		{2334 * ms, 1, yes(0, full-ms)},
		{4667*ms - us, 1, no(0, us, full-2334*ms+us)},
		// The tick that runs goes on over a charge, so that no lateness adds up.
		{4667*ms + 300*us, 1, yes(0, full-ms-300*us)},
		{7000*ms - us, 1, no(0, us, full-2334*ms+us)},
		{7000 * ms, 1, yes(0, full)},
	})
}

// fullWithinTick charges when the one token has come, in the middle of a tick:
// the next must not come before its time.
func fullWithinTick(t *testing.T, h Harness) {
	playOne(t, h, limits(t, slow), []step{
		{0, 1, yes(slow.Burst-1, 2334*ms)},
		{2333*ms + 333*us, 0, yes(slow.Burst-1, 667*us)},
		{2333*ms + 333*us, -slow.Burst, yes(slow.Burst, 0)},
		{2334 * ms, 1, yes(slow.Burst-1, 2334*ms)},
		{4667*ms + 333*us, 1, yes(slow.Burst-2, 2333*ms+667*us)}, // comes a third of a µs later
		{7001*ms - us, 0, yes(slow.Burst-1, us)},
		{7001 * ms, 1, yes(slow.Burst-1, 2334*ms)},
		{9334*ms + 334*us, 0, yes(slow.Burst-1, 666*us)},
		{9334*ms + 334*us, 1, yes(slow.Burst-1, 2334*ms)}, // it has, a third of a µs ago
	})
}

func severalLimits(t *testing.T, h Harness) {
	ls := limits(
		t, fivePer10s(bucket.Interval),
		bucket.Limit{Tokens: 10, Per: time.Minute, Burst: 7}, // a token in 6 s
	)
	playOne(t, h, ls, []step{
		{0, 4, yes(1, 10*sec)},
		{0, 2, no(1, 10*sec, 10*sec)}, // the second has 3, and lost none
		{0, 1, yes(0, 10*sec)},
		{10 * sec, 3, by(1, yes(0, 38*sec))}, // the second: 5 spent, 1 back and 4 s on, 3 spent
		{12 * sec, 1, by(1, yes(0, 42*sec))},
		{12 * sec, 1, by(1, no(0, 6*sec, 42*sec))},
		{12 * sec, 2, by(1, no(0, 12*sec, 42*sec))},
	})
}

func moreThanBurst(t *testing.T, h Harness) {
	playOne(t, h, limits(t, fivePer10s(bucket.Greedy)), []step{
		{0, 6, no(5, bucket.Never, 0)},
		{0, 1<<63 - 1, no(5, bucket.Never, 0)},
		{0, 2, yes(3, 4*sec)},
		{0, 1<<63 - 1, no(3, bucket.Never, 4*sec)},
		{0, 1 << 53, no(3, bucket.Never, 4*sec)},
		{0, 3, yes(0, 10*sec)},
	})
}

func rateZero(t *testing.T, h Harness) {
	open, closed := limits(t, fivePer10s(bucket.Greedy)), limits(t, bucket.Limit{Per: 10 * time.Second})
	playOne(t, h, closed, []step{
		{0, 1, no(0, bucket.Never, 0)},
		{0, 0, yes(0, 0)},
		{0, -1, yes(0, 0)},
	})
	playOne(t, h, open, []step{{0, 5, yes(0, 10*sec)}})
	playOne(t, h, closed, []step{
		{sec, 1, no(0, bucket.Never, 0)},
		{sec, -1, yes(0, 0)},
	})
	playOne(t, h, open, []step{{2 * sec, 2, no(1, 2*sec, 8*sec)}})
}

func lookWritesNothing(t *testing.T, h Harness) {
	playOne(t, h, limits(t, fivePer10s(bucket.Greedy)), []step{
		{0, 0, yes(5, 0)},
		{0, 5, yes(0, 10*sec)},
		{sec, 0, yes(0, 9*sec)},
		{1500 * ms, 0, yes(0, 8500*ms)},
		{2 * sec, 0, yes(1, 8*sec)},
		{2 * sec, 1, yes(0, 10*sec)},
	})
}

func denialWritesNothing(t *testing.T, h Harness) {
	playOne(t, h, limits(t, fivePer10s(bucket.Interval)), []step{
		{0, 5, yes(0, 10*sec)},
		{9 * sec, 1, no(0, sec, sec)},
		{10*sec - us, 1, no(0, us, us)},
		{10 * sec, 6, no(5, bucket.Never, 0)},
		{12 * sec, 5, yes(0, 10*sec)}, // the period begins here, not at a denial
		{22 * sec, 1, yes(4, 10*sec)},
	})
}

func refund(t *testing.T, h Harness) {
	playOne(t, h, limits(t, fivePer10s(bucket.Greedy)), []step{
		{0, 5, yes(0, 10*sec)},
		{sec, -2, yes(2, 5*sec)}, // half a token under way stays under way
		{2 * sec, 3, yes(0, 10*sec)},
		{2 * sec, -100, yes(5, 0)},
		{2 * sec, 6, no(5, bucket.Never, 0)},
		{2 * sec, 5, yes(0, 10*sec)},
		{2 * sec, -1 << 63, yes(5, 0)},
	})
}

func refundInterval(t *testing.T, h Harness) {
	playOne(t, h, limits(t, fivePer10s(bucket.Interval)), []step{
		{0, 5, yes(0, 10*sec)},
		{4 * sec, -2, yes(2, 6*sec)},
		{4 * sec, 2, yes(0, 6*sec)},
		{5 * sec, -5, yes(5, 0)},
		{6 * sec, 5, yes(0, 10*sec)}, // it was full: a new period
	})
}

func refundFull(t *testing.T, h Harness) {
	playOne(t, h, limits(t, fivePer10s(bucket.Greedy)), []step{
		{0, -3, yes(5, 0)},
		{0, 6, no(5, bucket.Never, 0)},
		{0, 5, yes(0, 10*sec)},
	})
}
