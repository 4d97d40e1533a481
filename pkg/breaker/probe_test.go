package breaker_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/breaker"
	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// One look at a time, further and further apart; and soon after the store
// answers it is used.
func TestRecovers(t *testing.T) {
	t.Parallel()
	for _, away := range []time.Duration{0, 50 * time.Millisecond, time.Second, 10 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{}
			f.do(func(ctx context.Context, _ []bucket.Charge, _ []bucket.Result) error {
				time.Sleep(25 * time.Millisecond)
				return failing("timeout")
			})
			b := mustNew(t, breaker.Options{Store: f})
			opensAfter(t.Context(), b, 20)
			start := time.Now()
			time.Sleep(away)
			f.set(nil)
			for b.Open() != nil {
				if time.Since(start) > away+600*time.Millisecond {
					t.Fatalf("open %v after the store is back from %v", time.Since(start)-away, away)
				}
				time.Sleep(time.Millisecond)
			}
			if err := take(t.Context(), b); err != nil {
				t.Errorf("Take of a store that is back = %v, want no error", err)
			}
			checkLooks(t, f, start)
		})
	}
}

func checkLooks(t *testing.T, f *fake, start time.Time) {
	t.Helper()
	before := start
	for i, at := range f.looks {
		gap := at.Sub(before)
		if least := min(75*time.Millisecond<<min(i, 10), 375*time.Millisecond); gap < least || gap > 525*time.Millisecond {
			t.Errorf("look %d comes %v after the one before, want %v to 525ms", i, gap, least)
		}
		before = at
	}
	if f.most > 1 {
		t.Errorf("%d looks at once, want 1", f.most)
	}
}

// A look charges nothing, each of another name.
func TestLooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		names := map[string]bool{}
		f.do(func(_ context.Context, charges []bucket.Charge, _ []bucket.Result) error {
			if charges[0].Key == "k" {
				return failing("timeout")
			}
			if c := charges[0]; len(charges) != 1 || c.Cost != 0 || c.Limits == nil {
				t.Errorf("a look is %+v, want one charge of 0 under limits", charges)
			}
			names[charges[0].Key] = true
			return failing("refused")
		})
		b := mustNew(t, breaker.Options{Store: f})
		opensAfter(t.Context(), b, 20)
		time.Sleep(10 * time.Second)
		_ = b.Close()
		if got := len(names); got < 20 || got != len(f.looks) {
			t.Errorf("%d names in %d looks, want 20 or more and as many", got, len(f.looks))
		}
		if err := take(t.Context(), b); !errors.Is(err, failing("refused")) {
			t.Errorf("Take = %v, want the failure of the last look", err)
		}
	})
}

// A store that answers looks and fails callers costs ever fewer calls.
func TestReopens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		f.do(func(_ context.Context, charges []bucket.Charge, _ []bucket.Result) error {
			if charges[0].Key == "k" {
				return failing("timeout")
			}
			return nil
		})
		b := mustNew(t, breaker.Options{Store: f})
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
			_ = take(t.Context(), b)
		}
		// A pause is 375 ms at least, after the first.
		if got, most := f.asked(), 20*(20_000/375+3); got > most {
			t.Errorf("%d calls of the store in 20s, want %d at most", got, most)
		}
	})
}

func TestChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got []breaker.Change
		f := &fake{}
		f.set(failing("timeout"))
		b := mustNew(t, breaker.Options{Store: f, Changed: func(c breaker.Change) { got = append(got, c) }})
		for _, step := range []struct {
			err  error
			wait time.Duration
			want []breaker.Change
		}{
			{failing("timeout"), 0, []breaker.Change{{Open: true, Err: failing("timeout")}}},
			{failing("loading"), 2 * time.Second, nil},
			{nil, 2 * time.Second, []breaker.Change{{Err: failing("loading")}}},
			{failing("refused"), 0, []breaker.Change{{Open: true, Err: failing("refused")}}},
		} {
			f.set(step.err)
			opensAfter(t.Context(), b, 30)
			time.Sleep(step.wait)
			synctest.Wait()
			for i, c := range got {
				if !c.Open && (c.Lasted < 2*time.Second || c.Lasted > 2600*time.Millisecond) {
					t.Errorf("closed after %v, want 2s to 2.6s", c.Lasted)
				}
				got[i].Lasted = 0
			}
			if diff := cmp.Diff(step.want, got); diff != "" {
				t.Errorf("changes once the store fails with %v (-want +got):\n%s", step.err, diff)
			}
			got = nil
		}
	})
}

// Close ends a look under way, and is not held up by a store that is.
func TestClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		f.set(failing("timeout"))
		b := mustNew(t, breaker.Options{Store: f})
		opensAfter(t.Context(), b, 20)
		f.do(func(ctx context.Context, _ []bucket.Charge, _ []bucket.Result) error {
			<-ctx.Done()
			return ctx.Err()
		})
		time.Sleep(150 * time.Millisecond)
		start := time.Now()
		if err := b.Close(); err != nil || time.Since(start) != 0 {
			t.Errorf("Close() = %v after %v, want nil at once", err, time.Since(start))
		}
		if err := take(t.Context(), b); !errors.As(err, new(*breaker.OpenError)) {
			t.Errorf("Take after Close = %v, want an OpenError", err)
		}
	})
}

// Calls that come when it opens and closes are answered by the store or by an
// OpenError, by many goroutines at once.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		f.set(nil)
		opened := 0
		b := mustNew(t, breaker.Options{Store: f, Changed: func(c breaker.Change) {
			if c.Open {
				opened++
			}
		}})
		end := time.Now().Add(20 * time.Second)
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				for time.Now().Before(end) {
					err := take(t.Context(), b)
					if err != nil && !errors.Is(err, failing("timeout")) {
						t.Errorf("Take = %v, want nil, the store's failure, or one that wraps it", err)
					}
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
		for i := range 10 {
			f.set([]error{failing("timeout"), nil}[i%2])
			time.Sleep(2 * time.Second)
		}
		all.Wait()
		_ = b.Close()
		if opened != 5 {
			t.Errorf("opened %d times, want 5", opened)
		}
	})
}
