package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/redisstore"
	"github.com/sluice-mesh/sluice/test/servers"
)

// A gathering is a store with one lane to a server that is paused: one call is
// under way, and what comes after it is gathered.
type gathering struct {
	*redisstore.Store
	server *servers.Server
	ran    int // scripts before
	wait   sync.WaitGroup
}

// gather begins one. before is charged first.
func gather(t *testing.T, kind servers.Kind, o servers.Options, before ...bucket.Charge) *gathering {
	t.Helper()
	g := &gathering{server: servers.Start(t, kind, o)}
	g.Store = open(t, redisstore.Options{URL: g.server.URL(), Deadline: patience, PoolSize: 1})
	look := tagged(t, "first")
	look.Cost = 0
	take(t, g.Store, append(before, look)...)
	g.ran = scripts(t, g.server)
	g.pause(t)
	g.send(t.Context(), look)
	g.until(t, func(waiting, busy int) bool { return waiting == 0 && busy == 1 })
	return g
}

// pause has the server hang, once the lane rests: what comes then is under way
// when the lane is busy.
func (g *gathering) pause(t *testing.T) {
	t.Helper()
	g.until(t, func(waiting, busy int) bool { return waiting == 0 && busy == 0 })
	g.server.Pause(t)
}

// An outcome is what came of a call, once the gathering has gone.
type outcome struct {
	results []bucket.Result
	err     error
	done    chan struct{}
}

func (g *gathering) send(ctx context.Context, charges ...bucket.Charge) *outcome {
	o := &outcome{results: make([]bucket.Result, len(charges)), done: make(chan struct{})}
	g.wait.Go(func() {
		defer close(o.done)
		o.err = g.Take(ctx, charges, o.results)
	})
	return o
}

func (g *gathering) until(t *testing.T, is func(waiting, busy int) bool) {
	t.Helper()
	for !is(g.Waiting()) {
		if t.Context().Err() != nil {
			t.Fatal("the test is over")
		}
		runtime.Gosched()
	}
}

// come has a caller come, and returns when it waits.
func (g *gathering) come(ctx context.Context, t *testing.T, charges ...bucket.Charge) *outcome {
	t.Helper()
	before, _ := g.Waiting()
	o := g.send(ctx, charges...)
	g.until(t, func(waiting, _ int) bool { return waiting > before })
	return o
}

// goes lets the server go on, and returns how many scripts it has run when all
// callers are answered.
func (g *gathering) goes(t *testing.T) int {
	t.Helper()
	g.server.Resume(t)
	g.wait.Wait()
	return scripts(t, g.server) - g.ran
}

// scripts is how many scripts the server has run.
func scripts(t *testing.T, s *servers.Server) int {
	t.Helper()
	sum := 0
	for _, name := range []string{"cmdstat_evalsha:calls=", "cmdstat_eval:calls="} {
		_, rest, _ := strings.Cut(s.Do(t, "INFO", "commandstats"), name)
		number, _, _ := strings.Cut(rest, ",")
		n, _ := strconv.Atoi(number) // "" is 0
		sum += n
	}
	return sum
}

// TestAlone has nobody else come: each call is a round trip of its own.
func TestAlone(t *testing.T) {
	t.Parallel()
	for _, kind := range servers.Kinds() {
		server := servers.Start(t, kind, servers.Options{})
		store := open(t, redisstore.Options{URL: server.URL(), Deadline: patience})
		take(t, store, one(t)) // the server knows the script now
		before := scripts(t, server)
		for range 50 {
			take(t, store, one(t))
		}
		if got := scripts(t, server) - before; got != 50 {
			t.Errorf("%s: 50 calls, one after the other, ran %d scripts, want 50", kind.Name, got)
		}
	}
}

// TestGather has 100 requests come while one is under way: they go as one, and
// are decided in their order.
func TestGather(t *testing.T) {
	t.Parallel()
	for _, kind := range servers.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			g := gather(t, kind, servers.Options{})
			ls := limits(t, bucket.Limit{Tokens: 1000, Per: 1000 * time.Hour})
			var model bucket.Bucket
			var got []*outcome
			var want []bool
			for i := range 100 {
				cost := int64(100 - i)
				got = append(got, g.come(t.Context(), t, bucket.Charge{Key: "k", Limits: ls, Cost: cost}))
				next, result := model.Take(ls, time.UnixMicro(0), cost)
				model, want = next, append(want, result.Allowed)
			}
			ran := g.goes(t)
			var allowed []bool
			for i, o := range got {
				if o.err != nil {
					t.Fatalf("request %d: Take = %v, want no error", i, o.err)
				}
				allowed = append(allowed, o.results[0].Allowed)
			}
			if diff := cmp.Diff(want, allowed); diff != "" {
				t.Errorf("allowed, in the order in which they came (-want +got):\n%s", diff)
			}
			if ran != 2 {
				t.Errorf("one request and %d that came while it was under way ran %d scripts, want 2", len(got), ran)
			}
			if !slices.Contains(want, false) {
				t.Error("none is denied, which tests nothing")
			}
		})
	}
}

// TestGivesUp has one of three in a batch give up, before it goes and while it
// is under way: the others are answered, and who gave up before is not charged.
func TestGivesUp(t *testing.T) {
	t.Parallel()
	g := gather(t, servers.Redis, servers.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	soon, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	charge := tagged(t, "k")
	before, canceled, late, after := g.come(t.Context(), t, charge), g.come(ctx, t, charge), g.come(soon, t, charge), g.come(t.Context(), t, charge)
	cancel()
	<-canceled.done
	<-late.done
	if got := causeOf(canceled.err); got != "canceled" || !errors.Is(canceled.err, context.Canceled) {
		t.Errorf("Take(canceled while it waits) = %v with cause %q, want canceled", canceled.err, got)
	}
	if got := causeOf(late.err); got != "timeout" || soon.Err() != nil {
		t.Errorf("Take(too late while it waits) = %v with cause %q, its context has %v; want timeout before that ends", late.err, got, soon.Err())
	}
	g.server.Resume(t)
	<-after.done
	wantLeft(t, "before", before.results, 9)
	wantLeft(t, "after", after.results, 8)

	// The same under way: the batch that the server has is charged as a whole.
	g.pause(t)
	ctx, cancel = context.WithCancel(t.Context())
	under := g.send(ctx, charge)
	g.until(t, func(waiting, busy int) bool { return waiting == 0 && busy == 1 })
	next := g.come(t.Context(), t, charge)
	cancel()
	<-under.done
	if got := causeOf(under.err); got != "canceled" {
		t.Errorf("Take(canceled under way) = %v with cause %q, want canceled", under.err, got)
	}
	g.goes(t)
	if left := next.results[0].Remaining; next.err != nil || (left != 6 && left != 7) {
		t.Errorf("Take(after one that was canceled under way) = %+v, %v, want 6 left, or 7 if that had not been sent", next.results[0], next.err)
	}
}

// TestGatherForeign has a value that is no bucket among the keys of a batch:
// that bucket alone fails.
func TestGatherForeign(t *testing.T) {
	t.Parallel()
	g := gather(t, servers.Redis, servers.Options{}, tagged(t, "well"))
	g.server.Resume(t)
	g.wait.Wait()
	g.server.Do(t, "SET", "sl:ill", "garbage")
	g.pause(t)
	g.send(t.Context(), tagged(t, "other"))
	g.until(t, func(waiting, busy int) bool { return waiting == 0 && busy == 1 })
	well, ill, last := g.come(t.Context(), t, tagged(t, "well")), g.come(t.Context(), t, tagged(t, "ill")), g.come(t.Context(), t, tagged(t, "well"))
	g.goes(t)
	wantLeft(t, "before it", well.results, 8)
	wantLeft(t, "after it", last.results, 7)
	if got := causeOf(ill.results[0].Err); got != "foreign" || ill.err != nil {
		t.Errorf("Take(garbage) = %+v, %v, with cause %q; want foreign for the bucket alone", ill.results, ill.err, got)
	}
}

// TestGatherUnwritable has a server that takes no writes: who is over a limit
// is told so, though others of the batch would be charged.
func TestGatherUnwritable(t *testing.T) {
	t.Parallel()
	for cause, setting := range map[string][]string{
		"full":     {"CONFIG", "SET", "maxmemory", "1"},
		"readonly": {"REPLICAOF", "127.0.0.1", "1"},
		"replicas": {"CONFIG", "SET", "min-replicas-to-write", "1"},
	} {
		for _, kind := range servers.Kinds() {
			t.Run(kind.Name+", "+cause, func(t *testing.T) {
				t.Parallel()
				empty := tagged(t, "empty")
				empty.Cost = 10
				g := gather(t, kind, servers.Options{}, empty)
				g.server.Resume(t)
				g.wait.Wait()
				g.server.Do(t, setting...)
				g.pause(t)
				look := tagged(t, "first")
				look.Cost, empty.Cost = 0, 1
				g.send(t.Context(), look)
				g.until(t, func(waiting, busy int) bool { return waiting == 0 && busy == 1 })
				a, denied, b := g.come(t.Context(), t, tagged(t, "a")), g.come(t.Context(), t, empty), g.come(t.Context(), t, tagged(t, "b"))
				g.goes(t)
				if denied.err != nil || denied.results[0].Allowed || denied.results[0].RetryAfter == 0 {
					t.Errorf("Take(empty bucket) = %+v, %v, want a denial", denied.results[0], denied.err)
				}
				for _, o := range []*outcome{a, b} {
					if got := causeOf(o.err); got != cause {
						t.Errorf("Take(server that takes no writes) = %v with cause %q, want %s", o.err, got, cause)
					}
				}
			})
		}
	}
}

// TestGatherForgotten has the server forget its scripts while a batch waits.
func TestGatherForgotten(t *testing.T) {
	t.Parallel()
	g := gather(t, servers.Valkey, servers.Options{})
	g.server.Resume(t)
	g.wait.Wait()
	do(t, g.server, "SCRIPT", "FLUSH")
	g.pause(t)
	first := g.send(t.Context(), tagged(t, "k"))
	g.until(t, func(waiting, busy int) bool { return waiting == 0 && busy == 1 })
	var others []*outcome
	for range 9 {
		others = append(others, g.come(t.Context(), t, tagged(t, "k")))
	}
	g.goes(t)
	left := map[int64]bool{}
	for _, o := range append(others, first) {
		if o.err != nil || !o.results[0].Allowed {
			t.Errorf("Take(server that forgot the script) = %+v, %v, want room", o.results[0], o.err)
		}
		left[o.results[0].Remaining] = true
	}
	if len(left) != 10 || !left[0] {
		t.Errorf("10 charges of one bucket of 10 left %v, want each number from 9 to 0 once", left)
	}
}

// TestTooManyWait has more come than may wait: those are told so at once.
func TestTooManyWait(t *testing.T) {
	t.Parallel()
	g := gather(t, servers.Redis, servers.Options{})
	ls := limits(t, bucket.Limit{Tokens: 100_000, Per: 1000 * time.Hour})
	charge := bucket.Charge{Key: "k", Limits: ls, Cost: 1}
	waiting := make([]*outcome, redisstore.MaxWaiting)
	for i := range waiting {
		waiting[i] = g.send(t.Context(), charge)
	}
	g.until(t, func(n, _ int) bool { return n == len(waiting) })
	err := g.Take(t.Context(), []bucket.Charge{charge}, make([]bucket.Result, 1))
	if got := causeOf(err); got != "busy" {
		t.Errorf("Take(a full queue) = %v with cause %q, want busy", err, got)
	}
	g.goes(t)
	for _, o := range waiting {
		if o.err != nil {
			t.Fatalf("Take(the last place in the queue or one before) = %v, want no error", o.err)
		}
	}
	charge.Cost = 0
	want := 100_000 - int64(len(waiting))
	if got := take(t, g.Store, charge)[0].Remaining; got != want {
		t.Errorf("%d left after %d charges, want %d", got, len(waiting), want)
	}
}

// TestStalledNode has one of three servers hang: calls of the others are
// answered meanwhile.
func TestStalledNode(t *testing.T) {
	t.Parallel()
	c := servers.Cluster(t, servers.Redis, 3, servers.Options{Args: []string{"--cluster-require-full-coverage", "no"}})
	store := open(t, redisstore.Options{URL: c.URL(), Deadline: patience})
	take(t, store, tagged(t, tag0), tagged(t, tag1), tagged(t, tag2))
	c.Primaries[1].Pause(t)
	stalled := &gathering{Store: store}
	var outcomes []*outcome
	for i := range 20 {
		outcomes = append(outcomes, stalled.send(t.Context(), tagged(t, tag1+strconv.Itoa(i))))
	}
	stalled.until(t, func(_, busy int) bool { return busy > 0 })
	for i := range 50 {
		take(t, store, tagged(t, fmt.Sprint(tag0, i)))
		take(t, store, tagged(t, fmt.Sprint(tag0, "a", i)), tagged(t, fmt.Sprint(tag2, "b", i)))
	}
	for _, o := range outcomes {
		select {
		case <-o.done:
			t.Errorf("Take(server that hangs) = %v while it does, want it to wait", o.err)
		default:
		}
	}
	c.Primaries[1].Resume(t)
	stalled.wait.Wait()
	for _, o := range outcomes {
		if o.err != nil || o.results[0].Remaining != 9 {
			t.Errorf("Take(server that hung) = %+v, %v, want 9 left", o.results[0], o.err)
		}
	}
}
