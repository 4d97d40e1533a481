package server

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A write changes the files at a moment, and says so or not.
type write struct {
	at      time.Duration
	content byte
	hint    bool
}

// every returns count writes of new content, one each step from at on.
func every(step, at time.Duration, count int) []write {
	writes := make([]write, count)
	for i := range writes {
		writes[i] = write{at + time.Duration(i)*step, byte(i + 1), true}
	}
	return writes
}

// followed plays writes to a follower, and returns what it loaded in the time
// life.
func followed(writes []write, life time.Duration) (contents []byte, moments []time.Duration) {
	start := time.Now()
	var now atomic.Int32
	hints := make(chan struct{}, 1)
	f := follower{
		stamp: func() stamp { return stamp(now.Load()) },
		load: func() {
			contents = append(contents, byte(now.Load()))
			moments = append(moments, time.Since(start))
		},
		hints: hints, poll: pollTime, quiet: quietTime, patience: patience,
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); f.run(ctx, 0) }()
	for _, w := range writes {
		time.Sleep(time.Until(start.Add(w.at)))
		synctest.Wait() // what was due by then is done
		now.Store(int32(w.content))
		if w.hint {
			select {
			case hints <- struct{}{}:
			default:
			}
		}
	}
	time.Sleep(time.Until(start.Add(life)))
	cancel()
	<-done
	return contents, moments
}

func TestFollower(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, tt := range []struct {
		name     string
		writes   []write
		contents []byte
		within   time.Duration // of the last write, for the last load
	}{
		{"nothing happens", nil, nil, 0},
		{"a hint at nothing", []write{{10 * ms, 0, true}}, nil, 0},
		{"a change that is told", []write{{10 * ms, 1, true}}, []byte{1}, 60 * ms},
		{"a change that is not", []write{{10 * ms, 1, false}}, []byte{1}, 400 * ms},
		{"two changes apart", []write{{10 * ms, 1, true}, {500 * ms, 2, true}}, []byte{1, 2}, 60 * ms},
		{"a file written in pieces", every(20*ms, 10*ms, 10), []byte{10}, 110 * ms},
		{"a change taken back at once", []write{{10 * ms, 1, true}, {40 * ms, 0, true}}, nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				contents, moments := followed(tt.writes, 10*time.Second)
				if diff := cmp.Diff(tt.contents, contents); diff != "" {
					t.Fatalf("loads after %v (-want +got):\n%s", tt.writes, diff)
				}
				if len(moments) == 0 {
					return
				}
				if late := moments[len(moments)-1] - tt.writes[len(tt.writes)-1].at; late > tt.within {
					t.Errorf("loaded %v after the last of %v, want %v at most", late, tt.writes, tt.within)
				}
			})
		})
	}
}

// Whoever writes without end must not keep a policy from coming into use: each
// second sees one.
func TestFollowerIsNotKeptWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, moments := followed(every(20*time.Millisecond, 0, 250), 5*time.Second)
		last := time.Duration(0)
		for _, at := range append(moments, 5*time.Second) {
			if at-last > time.Second {
				t.Errorf("loads at %v, want one in each second", moments)
			}
			last = at
		}
	})
}

// Whoever writes beside the policy without end must not have it read all the
// time.
func TestFollowerRests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		hints := make(chan struct{})
		f := follower{stamp: func() stamp { looks++; return 0 }, hints: hints, poll: time.Hour, quiet: quietTime}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go func() {
			for ctx.Err() == nil {
				select {
				case hints <- struct{}{}:
				case <-ctx.Done():
				}
			}
		}()
		f.run(ctx, 0)
		if most := int(time.Second/quietTime) + 1; looks < most/2 || looks > most {
			t.Errorf("%d looks in a second of hints, want %d at most, and half of that at least", looks, most)
		}
	})
}

func TestFollowerIsForced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		loads := 0
		force := make(chan os.Signal)
		f := follower{stamp: func() stamp { return 0 }, load: func() { loads++ }, force: force, poll: time.Second}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); f.run(ctx, 0) }()
		force <- os.Interrupt
		force <- os.Interrupt
		time.Sleep(time.Minute)
		cancel()
		<-done
		if loads != 2 {
			t.Errorf("loads = %d after being forced twice, want 2", loads)
		}
	})
}
