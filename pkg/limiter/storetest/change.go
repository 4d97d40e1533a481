package storetest

import (
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

func limitChanged(t *testing.T, h Harness) {
	five := limits(t, fivePer10s(bucket.Greedy))
	raised := limits(t, bucket.Limit{Tokens: 5, Per: 10 * time.Second, Burst: 8})
	lowered := limits(t, bucket.Limit{Tokens: 1, Per: 10 * time.Second, Burst: 2})
	playOne(t, h, five, []step{{0, 5, yes(0, 10*sec)}})
	playOne(t, h, raised, []step{
		{0, 3, yes(0, 16*sec)}, // at once
		{sec, 1, no(0, sec, 15*sec)},
		{2 * sec, 1, yes(0, 16*sec)},
	})
	playOne(t, h, lowered, []step{
		{2 * sec, 1, no(0, 10*sec, 20*sec)}, // 8 spent, 2 owed
		{7 * sec, 1, no(0, 5*sec, 15*sec)},  // counted from the last charge
		{12 * sec, 1, yes(0, 20*sec)},
	})
	playOne(t, h, five, []step{
		{12 * sec, 4, no(3, 2*sec, 4*sec)}, // 2 spent of 5: not full
		{14 * sec, 4, yes(0, 10*sec)},
	})
}

func limitsMatched(t *testing.T, h Harness) {
	long := bucket.Limit{Name: "long", Tokens: 60, Per: time.Minute}
	short := bucket.Limit{Name: "short", Tokens: 10, Per: 10 * time.Second}
	playOne(t, h, limits(t, long, short), []step{{0, 10, by(1, yes(0, 10*sec))}})
	// In another order, by name; with another period too.
	hour := bucket.Limit{Name: "long", Tokens: 60, Per: time.Hour}
	playOne(t, h, limits(t, short, hour), []step{
		{0, 1, no(0, sec, 10*sec)},
		{5 * sec, 5, yes(0, 10*sec)}, // 15 spent of hour
	})
	// By period, where the names are others.
	long.Name, short.Name = "", ""
	playOne(t, h, limits(t, short, long), []step{{5 * sec, 1, no(0, sec, 10*sec)}})
	// One that is new is full.
	playOne(t, h, limits(t, bucket.Limit{Name: "new", Tokens: 3, Per: time.Second}, short, hour), []step{
		{6 * sec, 1, by(1, yes(0, 10*sec))},
		{6 * sec, 0, by(1, yes(0, 10*sec))},
	})
}

func modeChanged(t *testing.T, h Harness) {
	greedy, interval := limits(t, fivePer10s(bucket.Greedy)), limits(t, fivePer10s(bucket.Interval))
	playOne(t, h, greedy, []step{
		{0, 5, yes(0, 10*sec)},
		{3 * sec, 1, yes(0, 9*sec)}, // and half a token under way
	})
	playOne(t, h, interval, []step{
		// As one charge at 3 s; full under any limit from 12 s on.
		{5 * sec, 1, no(0, 8*sec, 8*sec)},
		{12*sec - us, 1, no(0, sec+us, sec+us)},
		{12 * sec, 4, yes(1, 10*sec)},
		{16 * sec, 1, yes(0, 6*sec)},
	})
	playOne(t, h, greedy, []step{
		{18*sec - us, 1, no(0, us, 8*sec+us)}, // as one charge at 16 s
		{18 * sec, 1, yes(0, 10*sec)},
	})
}

func clockForward(t *testing.T, h Harness) {
	playOne(t, h, limits(t, fivePer10s(bucket.Greedy)), []step{
		{0, 5, yes(0, 10*sec)},
		{24 * time.Hour, 5, yes(0, 10*sec)},
		{24*time.Hour + 2*sec, 1, yes(0, 10*sec)},
	})
}

func clockBack(t *testing.T, h Harness) {
	playOne(t, h, limits(t, fivePer10s(bucket.Greedy)), []step{
		{time.Hour, 5, yes(0, 10*sec)},
		{time.Hour + sec, 1, no(0, sec, 9*sec)},
		// The denial moves the bucket here, so that its wait is true.
		{sec, 1, no(0, 2*sec, 10*sec)},
		{3*sec - us, 1, no(0, us, 8*sec+us)},
		{3 * sec, 1, yes(0, 10*sec)},
		// A charge moves it as well.
		{0, -1, yes(1, 8*sec)},
		{2 * sec, 2, yes(0, 10*sec)},
		{12 * sec, 5, yes(0, 10*sec)},
	})
}

func clockBackLook(t *testing.T, h Harness) {
	playOne(t, h, limits(t, fivePer10s(bucket.Greedy)), []step{
		{time.Hour, 5, yes(0, 10*sec)},
		{sec, 0, yes(0, 10*sec)},
		{time.Hour + 4*sec, 3, no(2, 2*sec, 6*sec)},
		{time.Hour + 4*sec, 2, yes(0, 10*sec)},
	})
}

// clockBackChange has the moment when the bucket is full go back with it.
func clockBackChange(t *testing.T, h Harness) {
	fast, slow := limits(t, fivePer10s(bucket.Greedy)), limits(t, bucket.Limit{Tokens: 5, Per: time.Hour})
	playOne(t, h, fast, []step{
		{time.Hour, 5, yes(0, 10*sec)},
		{0, 1, no(0, 2*sec, 10*sec)},
	})
	playOne(t, h, slow, []step{
		{10*sec - us, 1, no(0, 710*sec+us, 3590*sec+us)},
		{10 * sec, 5, yes(0, time.Hour)},
	})
}

// clockBackGroup has a group that fails move its buckets, and no shadow one.
func clockBackGroup(t *testing.T, h Harness) {
	ls := limits(t, fivePer10s(bucket.Greedy))
	all := []bucket.Charge{charge("lack", ls, 5), charge("room", ls, 3), charge("look", ls, 3), charge("shadow", ls, 3)}
	denied := []bucket.Charge{charge("lack", ls, 1), charge("room", ls, 1), charge("look", ls, 0), shadowed("shadow", ls, 1)}
	looks := []bucket.Charge{charge("lack", ls, 0), charge("room", ls, 0), charge("look", ls, 0), charge("shadow", ls, 0)}
	room := yes(2, 6*sec)
	play(t, h, []moment{
		{sec, all, []bucket.Result{yes(0, 10*sec), room, room, room}},
		{0, denied, []bucket.Result{no(0, 2*sec, 10*sec), room, room, room}},
		{2 * sec, looks, []bucket.Result{yes(1, 8*sec), yes(3, 4*sec), yes(2, 5*sec), yes(2, 5*sec)}},
	})
}
