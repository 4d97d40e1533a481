package bench

import (
	"context"
	"testing"
	"time"
)

// TestAlarm wants an alarm never to ring before its time, and to ring at once
// for what is past.
func TestAlarm(t *testing.T) {
	t.Parallel()
	a := newAlarm(t.Context())
	defer a.close()
	for _, d := range []time.Duration{-time.Hour, 0, 1, 30 * time.Microsecond, 3 * time.Millisecond, 20 * time.Millisecond} {
		due := time.Now().Add(d)
		a.wait(t.Context(), due)
		if early := time.Until(due); early > 0 {
			t.Errorf("an alarm in %v rang %v early", d, early)
		}
	}
}

// TestAlarmEnds wants the end of a run not to be waited for.
func TestAlarmEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	a := newAlarm(ctx)
	defer a.close()
	time.AfterFunc(10*time.Millisecond, cancel)
	due := time.Now().Add(time.Hour)
	for range 2 {
		a.wait(ctx, due)
	}
	if time.Until(due) <= 0 {
		t.Error("the alarm rang after an hour, want the end of its context")
	}
}
