package storetest

import (
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// toEdge is how far epoch is from a multiple of 10 s.
const toEdge = 9_876_544 * us

func aligned(t *testing.T, h Harness) {
	playOne(t, h, limits(t, fivePer10s(bucket.Aligned)), []step{
		{0, 2, yes(3, toEdge)},
		{sec, 3, yes(0, toEdge-sec)},
		{sec, 1, no(0, toEdge-sec, toEdge-sec)},
		{toEdge - us, 1, no(0, us, us)},
		{toEdge, 5, yes(0, 10*sec)}, // a second rate at once
		{toEdge + 9*sec, 1, no(0, sec, sec)},
		{toEdge + 35*sec, 1, yes(4, 5*sec)}, // no period begins with a charge
		{toEdge + 40*sec - us, 5, no(4, us, us)},
		{toEdge + 40*sec, 5, yes(0, 10*sec)},
	})
}

func alignedBurst(t *testing.T, h Harness) {
	l := fivePer10s(bucket.Aligned)
	l.Burst = 8
	playOne(t, h, limits(t, l), []step{
		{0, 8, yes(0, toEdge+10*sec)},
		{0, 6, no(0, toEdge+10*sec, toEdge+10*sec)},
		{toEdge, 6, no(5, 10*sec, 10*sec)},
		{toEdge + 3*sec, 5, yes(0, 17*sec)},
		{toEdge + 7*sec, -2, yes(2, 13*sec)},
		{toEdge + 10*sec, 0, yes(7, 10*sec)},
		{toEdge + 20*sec, 8, yes(0, 20*sec)},
	})
}

// berlin is where epoch is 23:13:20.123456, an hour ahead.
func berlin(t *testing.T) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatalf("LoadLocation(Europe/Berlin) = %v, want no error", err)
	}
	return zone
}

func until(zone *time.Location, year int, month time.Month, day, hour int) time.Duration {
	return time.Date(year, month, day, hour, 0, 0, 0, zone).Sub(epoch)
}

func zoneDays(t *testing.T, h Harness) {
	zone := berlin(t)
	midnight := until(zone, 2023, time.November, 15, 0)
	short := until(zone, 2024, time.March, 31, 0) // its clocks go from 2:00 to 3:00
	long := until(zone, 2024, time.October, 27, 0)
	ls := limits(t, bucket.Limit{Tokens: 5, Calendar: bucket.Day, Zone: zone, Refill: bucket.Aligned})
	playOne(t, h, ls, []step{
		{0, 5, yes(0, midnight)},
		{midnight - us, 1, no(0, us, us)},
		{midnight, 5, yes(0, 24*time.Hour)},
		{short + sec, 5, yes(0, 23*time.Hour-sec)},
		{short + 22*time.Hour, 1, no(0, time.Hour, time.Hour)},
		{short + 23*time.Hour, 5, yes(0, 24*time.Hour)},
		{long, 5, yes(0, 25*time.Hour)},
		{long + 25*time.Hour - us, 1, no(0, us, us)},
		{long + 25*time.Hour, 1, yes(4, 24*time.Hour)},
	})
}

func zonePeriods(t *testing.T, h Harness) {
	zone := berlin(t)
	monday := until(zone, 2023, time.November, 20, 0) // epoch is a Tuesday
	second := until(zone, 2023, time.November, 27, 0)
	december := until(zone, 2023, time.December, 1, 0)
	january := until(zone, 2024, time.January, 1, 0)
	february := until(zone, 2024, time.February, 1, 0)
	march := until(zone, 2024, time.March, 1, 0)
	for _, c := range []struct {
		calendar bucket.Calendar
		steps    []step
	}{
		{bucket.Week, []step{{0, 5, yes(0, second)}, {monday - us, 1, no(0, us, second-monday+us)}, {monday, 3, yes(0, 2*(second-monday))}}},
		{bucket.Month, []step{{0, 5, yes(0, january)}, {december, 3, yes(0, february-december)}, {march - sec, 5, yes(0, sec+31*24*time.Hour-time.Hour)}}},
		{bucket.Year, []step{{0, 3, yes(2, january)}, {january, 3, yes(2, 366*24*time.Hour)}}},
	} {
		t.Run(c.calendar.String(), func(t *testing.T) {
			l := bucket.Limit{Tokens: 3, Burst: 5, Calendar: c.calendar, Zone: zone, Refill: bucket.Aligned}
			moments := make([]moment, len(c.steps))
			for i, s := range c.steps {
				moments[i] = moment{s.at, []bucket.Charge{charge(c.calendar.String(), limits(t, l), s.cost)}, []bucket.Result{s.want}}
			}
			play(t, h, moments)
		})
	}
}

// fivePer64s has slots of a second, when it slides.
func fivePer64s(refill bucket.Refill) bucket.Limit {
	return bucket.Limit{Tokens: 5, Per: 64 * time.Second, Refill: refill}
}

func sliding(t *testing.T, h Harness) {
	playOne(t, h, limits(t, fivePer64s(bucket.Sliding)), []step{
		{0, 2, yes(3, 64*sec)},
		{10 * sec, 2, yes(1, 64*sec)},
		{20 * sec, 1, yes(0, 64*sec)},
		{20 * sec, 1, no(0, 44*sec, 64*sec)},
		{20 * sec, 3, no(0, 54*sec, 64*sec)},
		{20 * sec, 5, no(0, 64*sec, 64*sec)},
		{64*sec - us, 1, no(0, us, 20*sec+us)},
		{64 * sec, 3, no(2, 10*sec, 20*sec)},
		{64 * sec, 2, yes(0, 64*sec)},
		{74 * sec, 1, yes(1, 64*sec)},
		{84 * sec, 2, yes(0, 64*sec)},
		{148*sec - us, 5, no(3, us, us)},
		{148 * sec, 5, yes(0, 64*sec)},
		{148 * sec, 6, no(0, bucket.Never, 64*sec)},
	})
}

// slidingSlots has charges within a second leave with the last of them.
func slidingSlots(t *testing.T, h Harness) {
	playOne(t, h, limits(t, fivePer64s(bucket.Sliding)), []step{
		{0, 1, yes(4, 64*sec)},
		{500 * ms, 1, yes(3, 64*sec)},
		{sec - us, 1, yes(2, 64*sec)},
		{sec, 1, yes(1, 64*sec)}, // a slot of its own
		{2 * sec, 1, yes(0, 64*sec)},
		{64 * sec, 1, no(0, sec-us, 2*sec)},
		{65*sec - us, 3, yes(0, 64*sec)},
		{65 * sec, 1, yes(0, 64*sec)},
		{65 * sec, 1, no(0, sec, 64*sec)},
	})
}

func slidingRefund(t *testing.T, h Harness) {
	ls := limits(t, fivePer64s(bucket.Sliding))
	playOne(t, h, ls, []step{
		{0, 3, yes(2, 64*sec)},
		{10 * sec, 2, yes(0, 64*sec)},
		{20 * sec, -1, yes(1, 54*sec)},
		{20 * sec, -2, yes(3, 44*sec)},
		{20*sec + 500*ms, 1, yes(2, 64*sec)},
		{20*sec + 500*ms, 3, no(2, 43500*ms, 64*sec)},
		{21*sec + 500*ms, 2, yes(0, 64*sec)},
		{30 * sec, -100, yes(5, 0)},
		{30 * sec, 5, yes(0, 64*sec)},
	})
	// A refund of all that was taken last ends its slot, and is no reason to
	// keep what was taken before for longer.
	h.SetNow(epoch)
	play(t, h, []moment{
		{0, []bucket.Charge{charge("slot", ls, 1)}, []bucket.Result{yes(4, 64*sec)}},
		{10 * sec, []bucket.Charge{charge("slot", ls, 2)}, []bucket.Result{yes(2, 64*sec)}},
		{10*sec + 100*ms, []bucket.Charge{charge("slot", ls, -2)}, []bucket.Result{yes(4, 53900*ms)}},
		{10*sec + 200*ms, []bucket.Charge{charge("slot", ls, 1)}, []bucket.Result{yes(3, 64*sec)}},
		{64 * sec, []bucket.Charge{charge("slot", ls, 0)}, []bucket.Result{yes(4, 10200*ms)}},
	})
}

func slidingChanged(t *testing.T, h Harness) {
	five := limits(t, fivePer64s(bucket.Sliding))
	playOne(t, h, five, []step{{0, 3, yes(2, 64*sec)}, {10 * sec, 2, yes(0, 64*sec)}})
	raised, lowered := fivePer64s(bucket.Sliding), fivePer64s(bucket.Sliding)
	raised.Tokens, lowered.Tokens = 7, 3
	playOne(t, h, limits(t, raised), []step{{20 * sec, 1, yes(1, 64*sec)}, {20 * sec, 2, no(1, 44*sec, 64*sec)}})
	// The newest 3 are owed: 2 of 10 s and 1 of 20 s.
	playOne(t, h, limits(t, lowered), []step{
		{30 * sec, 1, no(0, 44*sec, 54*sec)},
		{64 * sec, 1, no(0, 10*sec, 20*sec)},
		{74 * sec, 1, yes(1, 64*sec)},
	})
	// Another period leaves each charge at its time: 1 of 20 s and 1 of 74 s.
	short, long := fivePer64s(bucket.Sliding), fivePer64s(bucket.Sliding)
	short.Per, long.Per = 32*time.Second, 640*time.Second
	playOne(t, h, limits(t, long), []step{
		{75 * sec, 3, yes(0, 640*sec)},
		{80 * sec, 1, no(0, 580*sec, 635*sec)},
	})
	playOne(t, h, limits(t, short), []step{
		{106 * sec, 2, no(1, sec, sec)}, // 1 of 74 s is back; 75 s: with it, in a slot of 10 s
		{107 * sec, 5, yes(0, 32*sec)},
	})
}

// slidingRegrouped brings charges seconds apart under a period of slots of
// 10 s: those within the first 10 s leave with the last of them.
func slidingRegrouped(t *testing.T, h Harness) {
	long := fivePer64s(bucket.Sliding)
	long.Per = 640 * time.Second
	playOne(t, h, limits(t, fivePer64s(bucket.Sliding)), []step{
		{0, 1, yes(4, 64*sec)},
		{4 * sec, 1, yes(3, 64*sec)},
		{9 * sec, 1, yes(2, 64*sec)},
		{10 * sec, 1, yes(1, 64*sec)},
	})
	playOne(t, h, limits(t, long), []step{
		{15 * sec, 2, no(1, 634*sec, 635*sec)},
		{20*sec - us, 1, yes(0, 640*sec)}, // in the slot of 10 s
		{649*sec - us, 1, no(0, us, 11*sec)},
		{649 * sec, 3, yes(0, 640*sec)},
	})
}

func slidingMode(t *testing.T, h Harness) {
	greedy, sliding := limits(t, fivePer64s(bucket.Greedy)), limits(t, fivePer64s(bucket.Sliding))
	aligned := limits(t, fivePer64s(bucket.Aligned))
	playOne(t, h, greedy, []step{{0, 4, yes(1, 51200*ms)}, {6400 * ms, 1, yes(0, 57600*ms)}})
	playOne(t, h, sliding, []step{ // 5 spent at 6.4 s; but full once it was under greedy
		{20 * sec, 1, no(0, 50400*ms, 50400*ms)},
		{64*sec - us, 1, no(0, 6400*ms+us, 6400*ms+us)},
		{64 * sec, 2, yes(3, 64*sec)},
		{74 * sec, 3, yes(0, 64*sec)},
	})
	const edge = 127_876_544 * us // a multiple of 64 s
	playOne(t, h, aligned, []step{
		{80 * sec, 1, no(0, edge-80*sec, edge-80*sec)},
		{edge, 1, yes(4, 64*sec)},
	})
	playOne(t, h, greedy, []step{{edge + 6400*ms, 5, no(4, 6400*ms, 6400*ms)}})
}

func slidingClockBack(t *testing.T, h Harness) {
	playOne(t, h, limits(t, fivePer64s(bucket.Sliding)), []step{
		{time.Hour, 3, yes(2, 64*sec)},
		{time.Hour + 10*sec, 2, yes(0, 64*sec)},
		// All of it moves, by an hour and 10 s.
		{0, 1, no(0, 54*sec, 64*sec)},
		{54*sec - us, 1, no(0, us, 10*sec+us)},
		{54 * sec, 3, yes(0, 64*sec)},
		{64 * sec, 2, yes(0, 64*sec)},
	})
}

func alignedClockBack(t *testing.T, h Harness) {
	playOne(t, h, limits(t, fivePer10s(bucket.Aligned)), []step{
		{time.Hour + toEdge - 3*sec, 5, yes(0, 3*sec)},
		// It is full as soon as it would have been, not at the next multiple.
		{toEdge - 7*sec, 1, no(0, 7*sec, 7*sec)},
		{toEdge - 4*sec - us, 1, no(0, 4*sec+us, 4*sec+us)},
		{toEdge - 4*sec, 5, yes(0, 4*sec)},
	})
}
