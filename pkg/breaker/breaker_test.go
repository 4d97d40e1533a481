package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-mesh/sluice/pkg/breaker"
	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// A failing is a store's error of that cause.
type failing string

func (f failing) Error() string { return "store: " + string(f) }
func (f failing) Cause() string { return string(f) }

// A fake is a store that does what it is told.
type fake struct {
	mu    sync.Mutex
	takes func(ctx context.Context, charges []bucket.Charge, results []bucket.Result) error
	calls int // of callers
	looks []time.Time
	busy  atomic.Int32 // looks under way
	most  int32
}

// set has the store fail with err, or answer if that is nil.
func (f *fake) set(err error) {
	f.do(func(context.Context, []bucket.Charge, []bucket.Result) error { return err })
}

func (f *fake) do(takes func(context.Context, []bucket.Charge, []bucket.Result) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.takes = takes
}

func (f *fake) Take(ctx context.Context, charges []bucket.Charge, results []bucket.Result) error {
	f.mu.Lock()
	takes := f.takes
	look := charges[0].Key != "k"
	if look {
		f.looks = append(f.looks, time.Now())
		f.most = max(f.most, f.busy.Add(1))
		defer f.busy.Add(-1)
	} else {
		f.calls++
	}
	f.mu.Unlock()
	return takes(ctx, charges, results)
}

func (f *fake) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

func mustNew(t testing.TB, o breaker.Options) *breaker.Breaker {
	t.Helper()
	b, err := breaker.New(o)
	if err != nil {
		t.Fatalf("New(%+v) = %v, want no error", o, err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func take(ctx context.Context, b *breaker.Breaker) error {
	return b.Take(ctx, []bucket.Charge{{Key: "k", Cost: 1}}, make([]bucket.Result, 1))
}

// opensAfter returns how many calls, at most limit, it takes to open b.
func opensAfter(ctx context.Context, b *breaker.Breaker, limit int) int {
	n := 0
	for ; n < limit && b.Open() == nil; n++ {
		_ = take(ctx, b)
	}
	return n
}

func TestNew(t *testing.T) {
	t.Parallel()
	if _, err := breaker.New(breaker.Options{}); err == nil {
		t.Error("New(no store) = nil, want an error")
	}
}

func TestOpensByCause(t *testing.T) {
	t.Parallel()
	const never, row = 500, 20
	for _, tt := range []struct {
		err  error
		want int
	}{
		{nil, never},
		{failing("timeout"), row},
		{failing("refused"), row},
		{failing("broken"), row},
		{failing("loading"), row},
		{failing("clusterdown"), row},
		{failing("auth"), row},
		{failing("other"), row},
		{fmt.Errorf("wrapped: %w", failing("busy")), row},
		{errors.New("of no cause"), row},
		{failing("canceled"), never},
		{context.Canceled, never},
		{failing("full"), never},
		{failing("readonly"), never},
		{failing("foreign"), never},
		{failing("limits"), never},
		{failing("moved"), never},
	} {
		f := &fake{}
		f.set(tt.err)
		b := mustNew(t, breaker.Options{Store: f})
		if got := opensAfter(t.Context(), b, never); got != tt.want {
			t.Errorf("%v: opens after %d calls, want %d", tt.err, got, tt.want)
		}
	}
}

// A caller that comes too late says nothing of the store.
func TestLateCallers(t *testing.T) {
	t.Parallel()
	f := &fake{}
	f.do(func(ctx context.Context, _ []bucket.Charge, _ []bucket.Result) error { return ctx.Err() })
	b := mustNew(t, breaker.Options{Store: f})
	late, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	if got := opensAfter(late, b, 500); got != 500 {
		t.Errorf("opens after %d calls whose deadline had passed, want never", got)
	}
	if err := late.Err(); !errors.Is(b.Take(late, []bucket.Charge{{Key: "k"}}, make([]bucket.Result, 1)), err) {
		t.Errorf("Take after the deadline = another error than the store's, want %v", err)
	}
}

// The failure may be of each bucket.
func TestOpensByResults(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		errs []error
		want int
	}{
		"all":            {[]error{failing("timeout"), failing("refused")}, 20},
		"one of two":     {[]error{failing("timeout"), nil}, 100},
		"foreign values": {[]error{failing("foreign"), failing("foreign")}, 100},
		"none":           {nil, 100},
	} {
		f := &fake{}
		f.do(func(_ context.Context, _ []bucket.Charge, results []bucket.Result) error {
			for i := range results {
				results[i].Err = tt.errs[i]
			}
			return nil
		})
		b := mustNew(t, breaker.Options{Store: f})
		n := 0
		for ; n < 100 && b.Open() == nil; n++ {
			charges := make([]bucket.Charge, max(len(tt.errs), 1))
			charges[0].Key = "k"
			_ = b.Take(t.Context(), charges, make([]bucket.Result, len(tt.errs)))
		}
		if n != tt.want {
			t.Errorf("%s: opens after %d calls, want %d", name, n, tt.want)
		}
	}
}

// While it is open callers are answered by its error, and the store is not
// asked by them.
func TestOpen(t *testing.T) {
	t.Parallel()
	f := &fake{}
	f.set(failing("timeout"))
	b := mustNew(t, breaker.Options{Store: f})
	opensAfter(t.Context(), b, 20)
	before := f.asked()
	err := take(t.Context(), b)
	var cause interface{ Cause() string }
	if !errors.As(err, &cause) || cause.Cause() != "open" {
		t.Errorf("Take while open = %v, want one of Cause open", err)
	}
	if !errors.Is(err, failing("timeout")) {
		t.Errorf("Take while open = %v, want one that wraps the timeout", err)
	}
	if got := f.asked(); got != before {
		t.Errorf("the store was asked %d times while open, want 0", got-before)
	}
}

// A part of the calls that fails does not open it, be it slow or fast, one at a
// time or all at once.
func TestStaysClosed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		callers   int
		fail, of  int           // so many of so many keys fail
		wait, and time.Duration // of a failure, of an answer
		silence   time.Duration
	}{
		"one caller":     {1, 2, 5, 25 * time.Millisecond, time.Millisecond, 0},
		"slow failures":  {90, 1, 3, 25 * time.Millisecond, time.Millisecond, 0},
		"quick failures": {90, 1, 3, 100 * time.Microsecond, time.Millisecond, 25 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{}
			var turn atomic.Int64
			f.do(func(context.Context, []bucket.Charge, []bucket.Result) error {
				if int(turn.Add(1))%tt.of < tt.fail {
					time.Sleep(tt.wait)
					return failing("timeout")
				}
				time.Sleep(tt.and)
				return nil
			})
			b := mustNew(t, breaker.Options{Store: f, Silence: tt.silence})
			var all sync.WaitGroup
			end := time.Now().Add(time.Second)
			for range tt.callers {
				all.Go(func() {
					for time.Now().Before(end) && b.Open() == nil {
						_ = take(t.Context(), b)
					}
				})
			}
			all.Wait()
			if b.Open() != nil {
				t.Errorf("%s: open after %d calls, of which %d in %d fail; want closed", name, f.asked(), tt.fail, tt.of)
			}
		})
	}
}

// Failures that are nearly all there is open it, though an answer comes now
// and then.
func TestOpensByShare(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		every int // so manieth call is answered
		open  bool
	}{{10, true}, {9, false}} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{}
			n := 0
			f.do(func(context.Context, []bucket.Charge, []bucket.Result) error {
				time.Sleep(time.Millisecond)
				if n++; n%tt.every == 0 {
					return nil
				}
				return failing("timeout")
			})
			b := mustNew(t, breaker.Options{Store: f})
			if opensAfter(t.Context(), b, 2000); (b.Open() != nil) != tt.open {
				t.Errorf("one in %d answered: open is %v, want %v", tt.every, b.Open() != nil, tt.open)
			}
		})
	}
}

// A store that was well for long opens it as soon as one that never was.
func TestOpensAfterAnswers(t *testing.T) {
	t.Parallel()
	for name, silence := range map[string]time.Duration{"one server": 0, "several": 25 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{}
			f.set(nil)
			b := mustNew(t, breaker.Options{Store: f, Silence: silence})
			for range 10_000 {
				_ = take(t.Context(), b)
			}
			f.do(func(context.Context, []bucket.Charge, []bucket.Result) error {
				time.Sleep(25 * time.Millisecond)
				return failing("timeout")
			})
			if got := opensAfter(t.Context(), b, 1000); got != 20 {
				t.Errorf("%s: opens after %d failures, want 20", name, got)
			}
		})
	}
}

// That a store was well for long does not count against the failures of half a
// second, of which one in ten is answered.
func TestOpensByShareAfterAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		n, every := 0, 1
		f.do(func(context.Context, []bucket.Charge, []bucket.Result) error {
			time.Sleep(time.Millisecond)
			if n++; n%every == 0 {
				return nil
			}
			return failing("timeout")
		})
		b := mustNew(t, breaker.Options{Store: f})
		opensAfter(t.Context(), b, 5000)
		every = 11
		if got := opensAfter(t.Context(), b, 5000); got < 500 || got > 520 {
			t.Errorf("opens after %d ms in which 10 of 11 calls fail, want 500 to 520", got)
		}
	})
}

// Failures are counted anew for each time that it is closed: what began before
// it opened says nothing of the store that is back.
func TestFailuresOfBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		f.set(nil)
		b := mustNew(t, breaker.Options{Store: f})
		_ = take(t.Context(), b)
		var slow sync.WaitGroup
		f.do(func(context.Context, []bucket.Charge, []bucket.Result) error {
			time.Sleep(time.Second)
			return failing("timeout")
		})
		for range 100 {
			slow.Go(func() { _ = take(t.Context(), b) })
		}
		synctest.Wait()
		f.set(failing("refused"))
		opensAfter(t.Context(), b, 20)
		f.set(nil)
		time.Sleep(500 * time.Millisecond)
		slow.Wait()
		if open := b.Open(); open != nil {
			t.Errorf("open by %v, of calls that began before it opened and closed; want closed", open)
		}
	})
}
