package storetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// crowd makes a charge group from each of callers, times times, all at one
// moment, and returns how many were allowed in whole.
func crowd(t *testing.T, h Harness, callers, times int, group func(caller int) []bucket.Charge) int64 {
	t.Helper()
	var admitted atomic.Int64
	var wait sync.WaitGroup
	start := make(chan struct{})
	for caller := range callers {
		wait.Go(func() {
			charges := group(caller)
			results := make([]bucket.Result, len(charges))
			<-start
			for range times {
				if err := h.Store.Take(t.Context(), charges, results); err != nil {
					t.Errorf("Take(%s) = %v, want no error", describe(charges), err)
					return
				}
				if allAllowed(results) {
					admitted.Add(1)
				}
			}
		})
	}
	close(start)
	wait.Wait()
	return admitted.Load()
}

func allAllowed(results []bucket.Result) bool {
	for _, r := range results {
		if !r.Allowed {
			return false
		}
	}
	return true
}

func oneBucket(t *testing.T, h Harness) {
	for _, refill := range []bucket.Refill{bucket.Greedy, bucket.Interval} {
		charges := []bucket.Charge{charge(refill.String(), limits(t, fivePer10s(refill)), 1)}
		got := crowd(t, h, 8, 40, func(int) []bucket.Charge { return charges })
		if got != 5 {
			t.Errorf("%v: 8 callers × 40 charges on a bucket of 5 admitted %d, want 5", refill, got)
		}
	}
}

// twoBuckets has callers name the buckets in either order.
func twoBuckets(t *testing.T, h Harness) {
	a := charge("a", limits(t, bucket.Limit{Tokens: 50, Per: time.Hour}), 1)
	b := charge("b", limits(t, bucket.Limit{Tokens: 80, Per: time.Hour}), 1)
	got := crowd(t, h, 500, 1, func(caller int) []bucket.Charge {
		if caller%2 == 0 {
			return []bucket.Charge{b, a}
		}
		return []bucket.Charge{a, b}
	})
	if got > 50 || (got < 50 && !h.Apart) {
		t.Errorf("500 charges of two buckets of 50 and 80 admitted %d, want 50", got)
	}
	a.Cost, b.Cost = 0, 0
	wantTake(t, h, []bucket.Charge{a, b}, []bucket.Result{
		yes(50-got, time.Duration(got)*72*sec), yes(80-got, time.Duration(got)*45*sec),
	})
}

func canceled(t *testing.T, h Harness) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantFailure(ctx, t, h, "canceled")
}

func tooLate(t *testing.T, h Harness) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	wantFailure(ctx, t, h, "timeout")
}

// wantFailure wants an error with its cause, and nothing charged.
func wantFailure(ctx context.Context, t *testing.T, h Harness, cause string) {
	t.Helper()
	c := charge("a", limits(t, fivePer10s(bucket.Greedy)), 5)
	err := h.Store.Take(ctx, []bucket.Charge{c}, make([]bucket.Result, 1))
	if got := causeOf(err); got != cause {
		t.Errorf("Take(context that is over) = %v with cause %q, want cause %q", err, got, cause)
	}
	if !errors.Is(err, ctx.Err()) {
		t.Errorf("Take(context that is over) = %v, want it to be %v", err, ctx.Err())
	}
	wantTake(t, h, []bucket.Charge{c}, []bucket.Result{yes(0, 10*sec)})
}

func causeOf(err error) string {
	var caused interface{ Cause() string }
	if errors.As(err, &caused) {
		return caused.Cause()
	}
	return ""
}

func lengthsDiffer(t *testing.T, h Harness) {
	c := charge("a", limits(t, fivePer10s(bucket.Greedy)), 5)
	for _, n := range []int{0, 2} {
		if err := h.Store.Take(t.Context(), []bucket.Charge{c}, make([]bucket.Result, n)); causeOf(err) == "" {
			t.Errorf("Take(1 charge, %d results) = %v, want an error with a cause", n, err)
		}
	}
	wantTake(t, h, []bucket.Charge{c}, []bucket.Result{yes(0, 10*sec)})
}
