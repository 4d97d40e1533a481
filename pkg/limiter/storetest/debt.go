package storetest

import (
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

func indebted(t *testing.T, most int64, list ...bucket.Limit) *bucket.Limits {
	t.Helper()
	ls, err := bucket.NewDebtLimits(most, list...)
	if err != nil {
		t.Fatalf("NewDebtLimits(%d, %+v) = %v, want no error", most, list, err)
	}
	return ls
}

func debt(t *testing.T, h Harness) {
	playOne(t, h, indebted(t, 10, fivePer10s(bucket.Greedy)), []step{
		{0, 0, yes(5, 0)},
		{0, 12, yes(0, 24*sec)}, // 7 more than there were
		{0, 0, no(0, 16*sec, 24*sec)},
		{0, 1, no(0, 18*sec, 26*sec)}, // taken, and denied
		{0, 1000, no(0, 22*sec, 30*sec)},
		{0, 1<<63 - 1, no(0, 22*sec, 30*sec)},
		{22*sec - us, 0, no(0, us, 8*sec+us)},
		{22 * sec, 0, yes(1, 8*sec)},
		{22 * sec, 1, yes(0, 10*sec)},
		{23 * sec, -12, yes(5, 0)},
		{23 * sec, 16, yes(0, 30*sec)},
		{23 * sec, -11, yes(1, 8*sec)},
	})
}

func debtInterval(t *testing.T, h Harness) {
	playOne(t, h, indebted(t, 0, fivePer10s(bucket.Interval)), []step{
		{0, 600, yes(0, 1010*sec)}, // 505 are spent: the burst, and a hundred of them
		{sec, 0, no(0, 1009*sec, 1009*sec)},
		{1004 * sec, 3, no(0, 6*sec, 16*sec)}, // 8 spent, 4 s into a period
		{1010 * sec, 0, yes(2, 10*sec)},
		{1020 * sec, 1, yes(4, 10*sec)},
	})
}

func debtOfSeveral(t *testing.T, h Harness) {
	ls := indebted(t, 0, fivePer10s(bucket.Greedy), bucket.Limit{Tokens: 8, Per: time.Hour})
	const each = time.Hour / 8
	playOne(t, h, ls, []step{
		{0, 6, yes(0, 12*sec)},
		{0, 0, no(0, 4*sec, 12*sec)},
		{4 * sec, 2, by(1, yes(0, time.Hour-4*sec))},
		{4 * sec, 1, by(1, no(0, 2*each-4*sec, 9*each-4*sec))},
	})
}

func debtChanged(t *testing.T, h Harness) {
	playOne(t, h, indebted(t, 10, fivePer10s(bucket.Greedy)), []step{{0, 15, yes(0, 30*sec)}})
	playOne(t, h, indebted(t, 2, fivePer10s(bucket.Greedy)), []step{{2 * sec, 0, no(0, 4*sec, 12*sec)}}) // 7 spent at 0 s
	playOne(t, h, limits(t, fivePer10s(bucket.Greedy)), []step{
		{sec, 1, no(0, sec, 9*sec)}, // no more than the burst is owed
		{2 * sec, 1, yes(0, 10*sec)},
	})
}

func debtRateZero(t *testing.T, h Harness) {
	playOne(t, h, indebted(t, 10, bucket.Limit{Per: 10 * time.Second}), []step{
		{0, 0, no(0, bucket.Never, 0)},
		{0, 3, no(0, bucket.Never, 0)},
		{0, -1, yes(0, 0)},
	})
}

// debtInGroup has a cost taken though another bucket denies, and denies the
// others where it is short.
func debtInGroup(t *testing.T, h Harness) {
	plain, owing := limits(t, fivePer10s(bucket.Greedy)), indebted(t, 10, fivePer10s(bucket.Greedy))
	play(t, h, []moment{
		{0, []bucket.Charge{charge("short", plain, 6), charge("owes", owing, 4)}, []bucket.Result{no(5, bucket.Never, 0), yes(1, 8*sec)}},
		{0, []bucket.Charge{charge("owes", owing, 4), charge("short", plain, 2)}, []bucket.Result{yes(0, 16*sec), yes(3, 4*sec)}},
		{0, []bucket.Charge{charge("short", plain, 2), charge("owes", owing, 1)}, []bucket.Result{yes(3, 4*sec), no(0, 10*sec, 18*sec)}},
		{0, []bucket.Charge{charge("short", plain, 2), charge("owes", owing, 0)}, []bucket.Result{yes(3, 4*sec), no(0, 10*sec, 18*sec)}},
		{10 * sec, []bucket.Charge{charge("short", plain, 2), charge("owes", owing, 0)}, []bucket.Result{yes(3, 4*sec), yes(1, 8*sec)}},
		// Under other limits a charge of the same key speaks only, and needs no
		// token of its own.
		{10 * sec, []bucket.Charge{charge("empty", plain, 5)}, []bucket.Result{yes(0, 10*sec)}},
		{10 * sec, []bucket.Charge{charge("empty", plain, -1), charge("empty", owing, 0)}, []bucket.Result{yes(1, 8*sec), yes(1, 8*sec)}},
		// Costs on one key are one cost.
		{10 * sec, []bucket.Charge{charge("owes", owing, 3), charge("owes", owing, 4)}, []bucket.Result{yes(0, 22*sec), yes(0, 22*sec)}},
	})
}

func debtInShadow(t *testing.T, h Harness) {
	plain, owing := limits(t, fivePer10s(bucket.Greedy)), indebted(t, 10, fivePer10s(bucket.Greedy))
	play(t, h, []moment{
		{0, []bucket.Charge{shadowed("owes", owing, 6), charge("a", plain, 6)}, []bucket.Result{yes(0, 12*sec), no(5, bucket.Never, 0)}},
		{0, []bucket.Charge{shadowed("owes", owing, 1), charge("a", plain, 5)}, []bucket.Result{no(0, 6*sec, 14*sec), yes(0, 10*sec)}},
		{0, []bucket.Charge{shadowed("owes", owing, 0), charge("a", plain, 1)}, []bucket.Result{no(0, 6*sec, 14*sec), no(0, 2*sec, 10*sec)}},
	})
}

// debtClockBack moves a bucket for a look that it denies, so that the wait it
// answers is true.
func debtClockBack(t *testing.T, h Harness) {
	playOne(t, h, indebted(t, 10, fivePer10s(bucket.Greedy)), []step{
		{time.Hour, 6, yes(0, 12*sec)},
		{0, 0, no(0, 4*sec, 12*sec)},
		{4*sec - us, 0, no(0, us, 8*sec+us)},
		{4 * sec, 0, yes(1, 8*sec)},
	})
}
