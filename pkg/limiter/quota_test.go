package limiter_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// quotas makes a match of buckets by name, each with 2 tokens: ? marks a
// quota, ~ a shadow, ! one without limits.
func quotas(t *testing.T, names string) policy.Match {
	t.Helper()
	var m policy.Match
	for name := range strings.FieldsSeq(names) {
		a := applied(t, strings.TrimLeft(name, "?~!"), 2)
		a.Quota, a.Shadow, a.Unlimited = strings.Contains(name, "?"), strings.Contains(name, "~"), strings.Contains(name, "!")
		m.Applied = append(m.Applied, a)
	}
	return m
}

// left is what remains of each bucket.
func left(t *testing.T, l *ledger, names ...string) []int64 {
	t.Helper()
	var all []int64
	for _, name := range names {
		m := quotas(t, name)
		m.Applied[0].Cost = 0
		all = append(all, mustNew(t, limiter.Options{Store: l}).Decide(t.Context(), m).Results[0].Remaining)
	}
	return all
}

func TestDecideQuotas(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		before string // buckets that are empty
		match  string
		spare  bool
		want   bool
		left   [4]int64 // of a, b, c and d
	}{
		{"", "?a ?b", false, true, [4]int64{1, 1, 2, 2}},
		{"a", "?a ?b", false, true, [4]int64{0, 1, 2, 2}},
		{"a b", "?a ?b", false, false, [4]int64{0, 0, 2, 2}},
		{"a b", "?a ?b", true, true, [4]int64{0, 0, 2, 2}},
		{"a", "?a ?!b", false, true, [4]int64{0, 2, 2, 2}},
		{"a b", "?a ?~b", false, true, [4]int64{0, 0, 2, 2}},
		{"", "?a c", false, true, [4]int64{1, 2, 1, 2}},
		{"a", "?a ?b c", false, true, [4]int64{0, 1, 1, 2}},
		{"a b", "?a ?b c", false, false, [4]int64{0, 0, 2, 2}},
		{"c", "?a c d", false, false, [4]int64{2, 2, 0, 2}},
		{"a c", "?a c d", false, false, [4]int64{0, 2, 0, 2}},
		{"a", "?a c ~d", false, false, [4]int64{0, 2, 2, 2}},
		{"d", "?a c ~d", false, true, [4]int64{1, 2, 1, 0}},
	} {
		l := newLedger()
		for name := range strings.FieldsSeq(test.before) {
			m := quotas(t, name)
			m.Applied[0].Cost = 2
			mustNew(t, limiter.Options{Store: l}).Decide(t.Context(), m)
		}
		m := quotas(t, test.match)
		m.Spare = test.spare
		d := mustNew(t, limiter.Options{Store: l}).Decide(t.Context(), m)
		got := left(t, l, "a", "b", "c", "d")
		if diff := cmp.Diff(test.left[:], got); d.Allowed != test.want || diff != "" {
			t.Errorf("Decide(%s) with %q empty = %v, want %v; left of a, b, c, d (-want +got):\n%s", test.match, test.before, d.Allowed, test.want, diff)
		}
		if !d.Allowed && d.Outcome(d.Deciding).Allowed {
			t.Errorf("Decide(%s) with %q empty is decided by place %d, which allows", test.match, test.before, d.Deciding)
		}
	}
}

// A rival takes the last of a bucket between a look at it and the charge.
type rival struct {
	*ledger
	takes string
	calls int
}

func (r *rival) Take(ctx context.Context, charges []bucket.Charge, results []bucket.Result) error {
	err := r.ledger.Take(ctx, charges, results)
	if r.calls++; r.calls == 1 {
		own := []bucket.Charge{{Key: r.takes, Limits: charges[0].Limits, Cost: 2}}
		if err := r.ledger.Take(ctx, own, make([]bucket.Result, 1)); err != nil {
			return err
		}
	}
	return err
}

func TestDecideQuotasGivesBack(t *testing.T) {
	t.Parallel()
	l := newLedger()
	d := mustNew(t, limiter.Options{Store: &rival{ledger: l, takes: "a"}}).Decide(t.Context(), quotas(t, "?a c"))
	if got := left(t, l, "a", "c"); d.Allowed || !cmp.Equal(got, []int64{0, 2}) {
		t.Errorf("Decide(?a c), a taken by another = %v, left of a and c %v, want a denial that spends nothing", d.Allowed, got)
	}
}
