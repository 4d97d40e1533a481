package policy_test

import (
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/descriptors"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// TestLease has a rule's tokens taken ahead, and those of an override where its
// limits allow it.
func TestLease(t *testing.T) {
	t.Parallel()
	spec := policy.RuleSpec{
		Name: "r", Descriptor: entries("u"), Lease: &policy.LeaseSpec{Share: 250},
		Limits: []bucket.Limit{{Tokens: 1000, Per: time.Minute}},
		Overrides: []policy.OverrideSpec{
			{Values: []policy.ValuesSpec{{Name: "u", Values: []string{"small"}}}, Limits: []bucket.Limit{{Tokens: 10, Per: time.Minute}}},
			{Values: []policy.ValuesSpec{{Name: "u", Values: []string{"sliding"}}}, Limits: []bucket.Limit{{Tokens: 1000, Per: time.Minute, Refill: bucket.Sliding}}},
		},
	}
	p := compile(t, rules(spec))
	for value, want := range map[string]int64{"x": 25, "small": 1, "sliding": 0} {
		tokens, d := p.ForDescriptor(descriptors.Descriptor{{Key: "u", Value: value}})[0].Limits.Lease()
		if lasts := 100 * time.Millisecond; tokens != want || (want > 0) != (d == lasts) {
			t.Errorf("%s leases %d tokens for %v, want %d for %v", value, tokens, d, want, lasts)
		}
	}
	spec.Lease.Share = 5001
	if _, faults := policy.Compile(rules(spec), policy.Options{}); len(faults) != 1 || faults[0].Path != "rules[0].lease" {
		t.Errorf("Compile(a share of 50.01%%) = %+v, want a fault of its lease", faults)
	}
}
