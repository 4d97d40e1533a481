package bench

import (
	"context"
	"syscall"
	"time"
)

// sleepUntil sleeps until t or the end of ctx. Go's own timers may fire a
// millisecond late on an idle machine, which would be counted as latency.
func sleepUntil(ctx context.Context, t time.Time) {
	const near = 2 * time.Millisecond
	if left := time.Until(t); left > near {
		sleep(ctx, left-near)
	}
	if left := time.Until(t); left > 0 && ctx.Err() == nil {
		ts := syscall.NsecToTimespec(int64(left))
		_ = syscall.Nanosleep(&ts, nil) // a signal ends it early, by less than near
	}
}
