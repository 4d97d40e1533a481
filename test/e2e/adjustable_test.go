package e2e_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// traffic is clients that ask without a pause.
type traffic struct {
	path             string
	admitted, denied atomic.Int64
	limit            atomic.Value // X-RateLimit-Limit of the last denial
	failed           atomic.Value // anything else that came
	changed          chan struct{}
}

// run asks until ctx ends.
func (f *traffic) run(ctx context.Context, c *client) {
	for ctx.Err() == nil {
		a, err := c.ask(ctx, http.MethodGet, f.path)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			f.failed.Store(err.Error())
		case a.status == http.StatusOK:
			f.admitted.Add(1)
		case a.status == http.StatusTooManyRequests:
			f.limit.Store(a.header.Get("X-RateLimit-Limit"))
			f.denied.Add(1)
		default:
			f.failed.Store(http.StatusText(a.status))
		}
		select {
		case f.changed <- struct{}{}:
		default:
		}
	}
}

// until waits until ok says so, after some answer.
func (f *traffic) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	late := time.After(startTime)
	for !ok() {
		select {
		case <-f.changed:
		case <-late:
			t.Fatalf("%s: not within %v; %d passed, %d were denied, by a limit of %v", what, startTime,
				f.admitted.Load(), f.denied.Load(), f.limit.Load())
		}
	}
}

func (f *traffic) deniedBy(limit string) func() bool {
	return func() bool { return f.limit.Load() == limit }
}

// more is true once n further requests were denied.
func (f *traffic) more(n int64) func() bool {
	from := f.denied.Load()
	return func() bool { return f.denied.Load() >= from+n }
}

// The policy is edited while requests run: no restart, no request lost, and
// what was spent stays spent. A minute is longer than all of it takes.
func TestAdjustable(t *testing.T) {
	t.Parallel()
	onEachStore(t, "adjustable", func(t *testing.T, y *system) {
		f := &traffic{path: "/service", changed: make(chan struct{}, 1)}
		ctx, stop := context.WithCancel(t.Context())
		var clients sync.WaitGroup
		defer clients.Wait()
		defer stop()
		for range 3 {
			clients.Go(func() { f.run(ctx, y.from(anna, edgePort)) })
		}
		for _, step := range []struct {
			rate, limit string
			admitted    int64 // in all, since the start
		}{
			{"5/1m", "5", 5},
			{"8/1m", "8", 8},
			{"4/1m", "4", 8},
			{"9/1m", "9", 9},
		} {
			y.edit(t, "5/1m", step.rate)
			f.until(t, "the limit "+step.rate, f.deniedBy(step.limit))
			f.until(t, "more requests", f.more(100))
			if got := f.admitted.Load(); got != step.admitted {
				t.Errorf("with %s: %d have passed, want %d", step.rate, got, step.admitted)
			}
		}
		// A policy with a fault changes nothing, and the log says where it is.
		y.edit(t, "5/1m", "5/1parsec")
		if _, err := y.sluices[0].Await(ctx, "parsec"); err != nil {
			t.Error(err)
		}
		f.until(t, "more requests", f.more(100))
		if got, limit := f.admitted.Load(), f.limit.Load(); got != 9 || limit != "9" {
			t.Errorf("with a faulty policy: %d have passed and the limit is %v, want 9 and 9", got, limit)
		}
		if failed := f.failed.Load(); failed != nil {
			t.Errorf("a request had no answer: %v", failed)
		}
		if got, want := y.upstream.Requests(), f.admitted.Load(); got != want {
			t.Errorf("the upstream had %d requests, want %d", got, want)
		}
	})
}

// edit replaces text in the published policy, and saves that.
func (y *system) edit(t *testing.T, old, text string) {
	t.Helper()
	if !strings.Contains(y.published, old) {
		t.Fatalf("%s has no %q", y.policy, old)
	}
	writeFile(t, y.policyFile, strings.Replace(y.published, old, text, 1))
}
