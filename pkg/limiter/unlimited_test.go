package limiter_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// unlimited makes the rules of m at those places unlimited.
func unlimited(m policy.Match, places ...int) policy.Match {
	for _, i := range places {
		m.Applied[i].Unlimited = true
	}
	return m
}

// A store is told nothing of a rule without limits, and its failure is not
// that rule's.
func TestDecideUnlimited(t *testing.T) {
	t.Parallel()
	room, lack := bucket.Result{Allowed: true, Remaining: 3}, bucket.Result{RetryAfter: time.Second}
	denying := unlimited(onError(policy.Deny503, policy.Allow), 0)
	refund := unlimited(rules("a", "b"), 0)
	refund.Applied[0].Cost = -1
	for name, tc := range map[string]struct {
		match policy.Match
		store limiter.Store
		want  verdict
	}{
		"alone":               {unlimited(rules("a"), 0), unasked{t}, verdict{Allowed: true, Reason: limiter.Unlimited}},
		"the first of two":    {unlimited(rules("a", "b"), 0, 1), unasked{t}, verdict{Allowed: true, Reason: limiter.Unlimited}},
		"in shadow":           {unlimited(rules("~a"), 0), unasked{t}, verdict{Allowed: true, Reason: limiter.Within, Deciding: -1}},
		"after a shadow":      {unlimited(rules("~a", "b"), 0, 1), unasked{t}, verdict{Allowed: true, Reason: limiter.Unlimited, Deciding: 1}},
		"a refund":            {unlimited(refund, 1), script{results: []bucket.Result{room}}, verdict{Allowed: true, Reason: limiter.Unlimited}},
		"before a limit":      {unlimited(rules("a", "b"), 0), script{results: []bucket.Result{room}}, verdict{Allowed: true, Reason: limiter.Within, Deciding: 1}},
		"before a denial":     {unlimited(rules("a", "b"), 0), script{results: []bucket.Result{lack}}, verdict{Reason: limiter.OverLimit, Deciding: 1}},
		"beside a dead store": {denying, script{err: errDown}, verdict{Allowed: true, Reason: limiter.StoreDown, Deciding: -1, Cause: "timeout"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := mustNew(t, limiter.Options{Store: tc.store}).Decide(t.Context(), tc.match)
			if diff := cmp.Diff(tc.want, verdictOf(d)); diff != "" {
				t.Errorf("Decide(%v) (-want +got):\n%s", tc.match, diff)
			}
		})
	}
}

func TestDecideKeepsResultsOfUnlimited(t *testing.T) {
	t.Parallel()
	room := bucket.Result{Allowed: true, Remaining: 3}
	l := mustNew(t, limiter.Options{Store: script{results: []bucket.Result{room}}})
	m := unlimited(rules("a", "b", "c"), 0, 2)
	d := l.Decide(t.Context(), m)
	want := []bucket.Result{{Allowed: true}, room, {Allowed: true}}
	if diff := cmp.Diff(want, d.Results); diff != "" {
		t.Errorf("Decide(%v) results (-want +got):\n%s", m, diff)
	}
	if got := d.Tightest(2, 3); got != -1 {
		t.Errorf("Tightest(2, 3) = %d, want -1: the rule has no limits", got)
	}
}

func TestDecideKeepsFailures(t *testing.T) {
	t.Parallel()
	failures := []policy.Failure{{Field: "cost"}}
	l := mustNew(t, limiter.Options{Store: newLedger()})
	for _, m := range []policy.Match{
		{},
		{Refusal: &policy.Refusal{Status: 400}},
		{Applied: []policy.Applied{applied(t, "a", 1)}},
		unlimited(rules("a"), 0),
	} {
		m.Failures = failures
		if got := l.Decide(t.Context(), m).Failures; len(got) != 1 {
			t.Errorf("Decide(%+v) has failures %v, want %v", m, got, failures)
		}
	}
}
