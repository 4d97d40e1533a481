package policy_test

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/descriptors"
	"github.com/sluice-mesh/sluice/pkg/identity"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// One policy answers a request by its attributes, and a descriptor.
func Example() {
	p, faults := policy.Compile(policy.Spec{
		Domain: "edge",
		Exempt: policy.ExemptSpec{Paths: []string{"/healthz"}},
		Rules: []policy.RuleSpec{
			{
				Name:   "api",
				Match:  &policy.MatchSpec{Path: "/api/*", Methods: []string{"GET"}},
				Per:    []string{"ip"},
				Limits: []bucket.Limit{{Tokens: 20, Per: 10 * time.Second, Refill: bucket.Interval}},
			},
			{
				Name:       "login",
				Descriptor: []policy.EntrySpec{{Key: "generic_key", Value: "login"}, {Key: "remote_address", Any: true}},
				Limits:     []bucket.Limit{{Tokens: 5, Per: time.Minute}},
			},
		},
	}, policy.Options{HashKey: []byte("the same on every replica")})
	if p == nil {
		fmt.Println(faults)
		return
	}

	a := &identity.Attributes{Method: "GET", Path: "/api//orders?page=2", Source: netip.MustParseAddr("203.0.113.7")}
	m := p.ForRequest(policy.Request{Attributes: a, Identity: p.Edge.Identify(a)})
	for _, applied := range m.Applied {
		fmt.Println(applied.Rule.Name, applied.Limits.At(0).Tokens)
	}

	for _, applied := range p.ForDescriptor(descriptors.Descriptor{{Key: "generic_key", Value: "login"}, {Key: "remote_address", Value: "203.0.113.7"}}) {
		fmt.Println(applied.Rule.Name, applied.Limits.At(0).Tokens)
	}
	// Output:
	// api 20
	// login 5
}

func ExampleNormalPath() {
	fmt.Println(policy.NormalPath("/api//x/../%75sers/a%2fb?page=2"))
	// Output: /api/users/a%2Fb
}

func ExampleCompile_faults() {
	_, faults := policy.Compile(policy.Spec{
		Domain: "edge",
		Rules: []policy.RuleSpec{{
			Name:   "api",
			Match:  &policy.MatchSpec{Path: "/api*"},
			Per:    []string{"usr"},
			Limits: []bucket.Limit{{Tokens: 20, Per: time.Microsecond}},
		}},
	}, policy.Options{})
	for _, f := range faults {
		fmt.Printf("%s: found %s\n", f.Path, f.Found)
	}
	// Output:
	// rules[0].match.path: found "/api*"
	// rules[0].per[0]: found "usr"
	// rules[0].limits[0].rate: found a period of 1µs
}
