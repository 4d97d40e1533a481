package limiter_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

func Example() {
	limits, _ := bucket.NewLimits(bucket.Limit{Tokens: 1, Per: time.Minute})
	rule := &policy.Rule{Name: "login"}
	l, err := limiter.New(limiter.Options{
		Store: newLedger(),
		Observe: func(_ context.Context, d limiter.Decision) {
			fmt.Println("observed:", d.Reason)
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	m := policy.Match{Applied: []policy.Applied{{Rule: rule, Charge: bucket.Charge{Key: "k", Limits: limits, Cost: 1}}}}
	for range 2 {
		d := l.Decide(context.Background(), m)
		o := d.Outcome(d.Deciding)
		fmt.Println(d.Allowed, o.Rule.Name, "remaining", o.Remaining, "reset", o.Seconds())
	}
	// Output:
	// observed: within
	// true login remaining 0 reset 60
	// observed: over_limit
	// false login remaining 0 reset 60
}

func TestNewWants(t *testing.T) {
	t.Parallel()
	if _, err := limiter.New(limiter.Options{}); err == nil || !strings.Contains(err.Error(), "Options.Store") {
		t.Errorf("New(Options{}) = %v, want an error that names Options.Store", err)
	}
}

// verdict is what most tests want of a decision.
type verdict struct {
	Allowed  bool
	Reason   limiter.Reason
	Deciding int
	Cause    string
	Local    bool
}

func verdictOf(d limiter.Decision) verdict {
	return verdict{d.Allowed, d.Reason, d.Deciding, d.Cause(), d.Local}
}

func TestDecideByResults(t *testing.T) {
	t.Parallel()
	refusal := &policy.Refusal{Name: "user", Status: 401}
	room := func(left int64) bucket.Result { return bucket.Result{Allowed: true, Remaining: left} }
	full := func(left int64, in time.Duration) bucket.Result {
		return bucket.Result{Allowed: true, Remaining: left, FullIn: in}
	}
	lack := func(wait time.Duration) bucket.Result { return bucket.Result{RetryAfter: wait} }
	for name, tc := range map[string]struct {
		match   policy.Match
		results []bucket.Result
		want    verdict
	}{
		"nothing applies": {want: verdict{Allowed: true, Reason: limiter.NoRule, Deciding: -1}},
		"exempt":          {match: policy.Match{Exempt: true}, want: verdict{Allowed: true, Reason: limiter.Exempt, Deciding: -1}},
		"refused":         {match: policy.Match{Refusal: refusal}, want: verdict{Reason: limiter.Refused, Deciding: -1}},
		"exempt beats refused": {
			match: policy.Match{Exempt: true, Refusal: refusal},
			want:  verdict{Allowed: true, Reason: limiter.Exempt, Deciding: -1},
		},
		"one with room":                {rules("a"), []bucket.Result{room(3)}, verdict{Allowed: true, Reason: limiter.Within}},
		"one without":                  {rules("a"), []bucket.Result{lack(time.Second)}, verdict{Reason: limiter.OverLimit}},
		"fewest tokens left":           {rules("a", "b", "c"), []bucket.Result{room(3), room(1), room(2)}, verdict{Allowed: true, Reason: limiter.Within, Deciding: 1}},
		"then the longest to full":     {rules("a", "b", "c"), []bucket.Result{full(1, 2), full(1, 9), full(1, 9)}, verdict{Allowed: true, Reason: limiter.Within, Deciding: 1}},
		"then the file's order":        {rules("a", "b"), []bucket.Result{full(1, 2), full(1, 2)}, verdict{Allowed: true, Reason: limiter.Within, Deciding: 0}},
		"longest wait of all":          {rules("a", "b", "c"), []bucket.Result{lack(1), lack(5), lack(2)}, verdict{Reason: limiter.OverLimit, Deciding: 1}},
		"no wait helps is the longest": {rules("a", "b"), []bucket.Result{lack(time.Hour), lack(bucket.Never)}, verdict{Reason: limiter.OverLimit, Deciding: 1}},
		"a lacking one before an empty one": {
			rules("a", "b"), []bucket.Result{room(0), lack(1)}, verdict{Reason: limiter.OverLimit, Deciding: 1},
		},
		"shadow never denies":       {rules("~a"), []bucket.Result{lack(time.Second)}, verdict{Allowed: true, Reason: limiter.Within, Deciding: -1}},
		"shadow never decides":      {rules("~a", "b"), []bucket.Result{room(0), room(9)}, verdict{Allowed: true, Reason: limiter.Within, Deciding: 1}},
		"shadow sets no wait":       {rules("a", "~b"), []bucket.Result{lack(1), lack(9)}, verdict{Reason: limiter.OverLimit, Deciding: 0}},
		"shadow unread is no fault": {rules("~a"), []bucket.Result{{Err: errLost}}, verdict{Allowed: true, Reason: limiter.Within, Deciding: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := mustNew(t, limiter.Options{Store: script{results: tc.results}})
			got := verdictOf(l.Decide(t.Context(), tc.match))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Decide(%v) (-want +got):\n%s", tc.match, diff)
			}
		})
	}
}

func TestDecideWithoutStore(t *testing.T) {
	t.Parallel()
	allow, deny := policy.Allow, policy.Deny503
	room, lack := bucket.Result{Allowed: true, Remaining: 1}, bucket.Result{RetryAfter: time.Second}
	down := script{err: errDown}
	for name, tc := range map[string]struct {
		match policy.Match
		store limiter.Store
		local limiter.Store
		want  verdict
	}{
		"B045 allow allows":            {onError(allow), down, nil, verdict{Allowed: true, Reason: limiter.StoreDown, Deciding: -1, Cause: "timeout"}},
		"B045 deny denies":             {onError(deny), down, nil, verdict{Reason: limiter.StoreDown, Cause: "timeout"}},
		"B045 local with room":         {onError(policy.Local), down, script{results: []bucket.Result{room}}, verdict{Allowed: true, Reason: limiter.Within, Cause: "timeout", Local: true}},
		"B045 local without":           {onError(policy.Local), down, script{results: []bucket.Result{lack}}, verdict{Reason: limiter.OverLimit, Cause: "timeout", Local: true}},
		"no local store allows":        {onError(policy.Local), down, nil, verdict{Allowed: true, Reason: limiter.StoreDown, Deciding: -1, Cause: "timeout"}},
		"a local store that fails too": {onError(policy.Local), down, down, verdict{Allowed: true, Reason: limiter.StoreDown, Deciding: -1, Cause: "timeout"}},
		"any deny denies": {
			onError(policy.Local, allow, deny), down,
			script{results: []bucket.Result{room}},
			verdict{Reason: limiter.StoreDown, Deciding: 2, Cause: "timeout"},
		},
		"local decides for its own": {
			onError(allow, policy.Local), down,
			script{results: []bucket.Result{lack}},
			verdict{Reason: limiter.OverLimit, Deciding: 1, Cause: "timeout", Local: true},
		},
		"shadow has no say": {
			policy.Match{Applied: append(rules("~a").Applied, onError(allow).Applied...)},
			down,
			script{results: []bucket.Result{lack}},
			verdict{Allowed: true, Reason: limiter.StoreDown, Deciding: -1, Cause: "timeout"},
		},
		"an error without a cause": {onError(allow), script{err: errors.New("?")}, nil, verdict{Allowed: true, Reason: limiter.StoreDown, Deciding: -1, Cause: "other"}},
		"one bucket unread, deny": {
			onError(allow, deny),
			script{results: []bucket.Result{room, {Err: errLost}}},
			nil,
			verdict{Reason: limiter.StoreDown, Deciding: 1, Cause: "other"},
		},
		"one bucket unread, allow": {
			onError(allow, allow),
			script{results: []bucket.Result{room, {Err: errLost}}},
			nil,
			verdict{Allowed: true, Reason: limiter.Within, Deciding: 0, Cause: "other"},
		},
		"one bucket unread, local lacks": {
			onError(allow, policy.Local),
			script{results: []bucket.Result{room, {Err: errLost}}},
			script{results: []bucket.Result{lack}},
			verdict{Reason: limiter.OverLimit, Deciding: 1, Cause: "other", Local: true},
		},
		"one bucket unread, another denied": {
			onError(allow, policy.Local),
			script{results: []bucket.Result{lack, {Err: errLost}}},
			unasked{t},
			verdict{Reason: limiter.OverLimit, Deciding: 0, Cause: "other"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := mustNew(t, limiter.Options{Store: tc.store, Local: tc.local})
			got := verdictOf(l.Decide(t.Context(), tc.match))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Decide(%v) (-want +got):\n%s", tc.match, diff)
			}
		})
	}
}

func TestDecideCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := mustNew(t, limiter.Options{Store: script{err: context.Canceled}, Local: unasked{t}})
	want := verdict{Reason: limiter.Canceled, Deciding: -1, Cause: "other"}
	if got := verdictOf(l.Decide(ctx, onError(policy.Deny503))); got != want {
		t.Errorf("Decide(canceled) = %+v, want %+v", got, want)
	}
}

// A store's own deadline is a store that is down, whoever set the context's.
func TestDecideStoreDeadline(t *testing.T) {
	t.Parallel()
	l := mustNew(t, limiter.Options{Store: script{err: context.DeadlineExceeded}})
	want := verdict{Reason: limiter.StoreDown, Cause: "other"}
	if got := verdictOf(l.Decide(t.Context(), onError(policy.Deny503))); got != want {
		t.Errorf("Decide() = %+v, want %+v", got, want)
	}
}

// A refund beside a charge that is denied gives its tokens back all the same.
func TestDecideRefundsApart(t *testing.T) {
	t.Parallel()
	store := newLedger()
	l := mustNew(t, limiter.Options{Store: store})
	site, user := applied(t, "site", 10), applied(t, "user", 2)
	decide := func(siteCost, userCost int64) limiter.Decision {
		site.Cost, user.Cost = siteCost, userCost
		return l.Decide(t.Context(), policy.Match{Applied: []policy.Applied{site, user}})
	}
	for i, step := range []struct {
		site, user int64
		allowed    bool
		left       []int64
	}{
		{5, 2, true, []int64{5, 0}},
		{-3, 1, false, []int64{8, 0}},
		{1, 1, false, []int64{8, 0}},
		{-100, -1, true, []int64{10, 1}},
	} {
		d := decide(step.site, step.user)
		left := []int64{d.Results[0].Remaining, d.Results[1].Remaining}
		if d.Allowed != step.allowed || !cmp.Equal(left, step.left) {
			t.Errorf("step %d: Decide(%d, %d) = %v, remaining %d, want %v, %d", i, step.site, step.user, d.Allowed, left, step.allowed, step.left)
		}
	}
}

func TestObserveOnce(t *testing.T) {
	t.Parallel()
	var seen []verdict
	l := mustNew(t, limiter.Options{
		Store:   script{results: []bucket.Result{{Allowed: true}}},
		Observe: func(_ context.Context, d limiter.Decision) { seen = append(seen, verdictOf(d)) },
	})
	for _, m := range []policy.Match{rules("a"), {Exempt: true}, {}} {
		got := verdictOf(l.Decide(t.Context(), m))
		if len(seen) != 1 || seen[0] != got {
			t.Errorf("Decide(%v) observed %+v, want %+v once", m, seen, got)
		}
		seen = nil
	}
	if l.Unknown(t.Context(), "x"); len(seen) != 1 || seen[0].Reason != limiter.UnknownDomain {
		t.Errorf("Unknown() observed %+v, want %v once", seen, limiter.UnknownDomain)
	}
}

func TestB102UnknownIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	now := time.Unix(1_000_000, 0)
	l := mustNew(t, limiter.Options{
		Store: script{},
		Log:   slog.New(slog.NewTextHandler(&out, nil)),
		Now:   func() time.Time { return now },
	})
	for i, step := range []struct {
		after time.Duration
		want  string
	}{
		{0, "requests=1\n"},
		{0, ""},
		{59 * time.Second, ""},
		{time.Second, "requests=3\n"},
	} {
		now = now.Add(step.after)
		out.Reset()
		d := l.Unknown(t.Context(), strings.Repeat("d", 1000)+"\n")
		if got := verdictOf(d); got != (verdict{Allowed: true, Reason: limiter.UnknownDomain, Deciding: -1}) {
			t.Errorf("step %d: Unknown() = %+v, want it allowed", i, got)
		}
		if got := out.String(); !strings.HasSuffix(got, step.want) || (step.want == "") != (got == "") || len(got) > 300 {
			t.Errorf("step %d: Unknown() logged %q, want %q", i, got, step.want)
		}
	}
}

func TestReasonString(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for r := limiter.NoRule; r <= limiter.UnknownDomain; r++ {
		if s := r.String(); s == "" || seen[s] {
			t.Errorf("Reason(%d).String() = %q, want a label of its own", r, s)
		}
		seen[r.String()] = true
	}
	if got, want := limiter.Reason(200).String(), "reason(200)"; got != want {
		t.Errorf("Reason(200).String() = %q, want %q", got, want)
	}
}

func TestShadowDenied(t *testing.T) {
	t.Parallel()
	results := []bucket.Result{{}, {Allowed: true}, {}, {Err: errLost}}
	l := mustNew(t, limiter.Options{Store: script{results: results}})
	d := l.Decide(t.Context(), rules("~a", "~b", "c", "~d"))
	for i, want := range []bool{true, false, false, false, false} {
		if got := d.ShadowDenied(i); got != want {
			t.Errorf("ShadowDenied(%d) = %v, want %v", i, got, want)
		}
	}
}
