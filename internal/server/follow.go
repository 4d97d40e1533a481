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
		select {
		case <-ctx.Done():
			return
		case <-f.force:
			seen = f.stamp()
			f.load()
		case <-hints:
			hints, rested = nil, time.After(f.quiet)
			seen = f.look(ctx, seen)
		case <-rested:
			hints, rested = f.hints, nil
		case <-ticks.C:
			seen = f.look(ctx, seen)
		}
	}
}

// look has the files read if they are not as they were seen, and returns how
// they were seen last.
func (f *follower) look(ctx context.Context, seen stamp) stamp {
	now := f.stamp()
	if now == seen {
		return seen
	}
	if now = f.settled(ctx, now); now == seen || ctx.Err() != nil {
		return seen
	}
	f.load()
	return now
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
