package policy_test

import (
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/descriptors"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// A rule with debt counts what is reported, whatever is left, and lets nobody
// pass until that is paid.
func TestDebt(t *testing.T) {
	t.Parallel()
	type step struct {
		at      time.Duration
		cost    int64 // 0 looks
		allowed bool
		wait    time.Duration
	}
	for _, test := range []struct {
		id    string
		limit bucket.Limit
		steps []step
	}{
		{"B067", bucket.Limit{Tokens: 60, Per: time.Minute, Burst: 100}, []step{
			{0, 0, true, 0},
			{0, 220, true, 0},
			{0, 0, false, 121 * time.Second},
			{121*time.Second - time.Microsecond, 0, false, time.Microsecond},
			{121 * time.Second, 0, true, 0},
		}},
		{"B068", bucket.Limit{Tokens: 10, Per: time.Hour}, []step{
			{0, 8, true, 0},
			{0, 8, true, 0}, // 16 are used now
			{0, 0, false, 42 * time.Minute},
			{42 * time.Minute, 0, true, 0},
		}},
	} {
		p := compile(t, rules(policy.RuleSpec{Name: "r", Descriptor: entries("u"), Debt: true, Limits: []bucket.Limit{test.limit}}))
		var b bucket.Bucket
		for i, s := range test.steps {
			charge := p.ForDescriptor(descriptors.Descriptor{{Key: "u", Value: "x"}})[0].Charge
			charge.Cost = s.cost
			var got [1]bucket.Result
			bucket.Group([]bucket.Charge{charge}, got[:], now.Add(s.at), func(string) *bucket.Bucket { return &b })
			if got[0].Allowed != s.allowed || got[0].RetryAfter != s.wait {
				t.Errorf("%s: step %d: a charge of %d = %+v, want allowed %v, a wait of %v", test.id, i, s.cost, got[0], s.allowed, s.wait)
			}
		}
	}
}
