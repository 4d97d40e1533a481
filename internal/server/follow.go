package server

import (
	"context"
	"os"
	"time"
)

// A follower has the policy read again when it changes, and not while it is
// being written.
type follower struct {
	stamp func() stamp
	load  func()
	hints <-chan struct{}  // something may have changed
	force <-chan os.Signal // read it, changed or not
	poll  time.Duration    // look that often, hints or none
	// quiet is how long the files must stay as they are before they are read,
	// and patience how long that is waited for.
	quiet, patience time.Duration
}

// run follows the files until ctx ends. seen is their stamp when they were
// read last.
func (f *follower) run(ctx context.Context, seen stamp) {
	ticks := time.NewTicker(f.poll)
	defer ticks.Stop()
	// A hint is followed by a rest: whoever writes beside the policy all the
	// time must not have it read all the time.
	hints, rested := f.hints, (<-chan time.Time)(nil)
	for {
		forced := false
		select {
		case <-ctx.Done():
			return
		case <-f.force:
			forced = true
		case <-hints:
			hints, rested = nil, time.After(f.quiet)
		case <-rested:
			hints, rested = f.hints, nil
			continue
		case <-ticks.C:
		}
		if now := f.stamp(); forced || now != seen {
			if !forced {
				now = f.settled(ctx, now)
			}
			if ctx.Err() != nil {
				return
			}
			if forced || now != seen {
				seen = now
				f.load()
			}
		}
	}
}

// settled waits until the files do not change any more, and returns their
// stamp.
func (f *follower) settled(ctx context.Context, last stamp) stamp {
	for end := time.Now().Add(f.patience); time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return last
		case <-time.After(f.quiet):
		}
		now := f.stamp()
		if now == last {
			return now
		}
		last = now
	}
	return last
}
