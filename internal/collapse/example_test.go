package collapse_test

import (
	"fmt"
	"net/netip"

	"github.com/sluice-mesh/sluice/internal/collapse"
	"github.com/sluice-mesh/sluice/pkg/identity"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// A proxy that nobody named brings its clients' addresses.
func Example() {
	p, _ := policy.Compile(policy.Spec{Domain: "edge"}, policy.Options{})
	w := collapse.New(collapse.Options{Count: func(domain, _, reason string) { fmt.Println(domain, reason) }})
	for i := range 100 {
		a := &identity.Attributes{
			Source:  netip.MustParseAddr("10.0.0.5"),
			Headers: map[string]string{"x-forwarded-for": fmt.Sprintf("203.0.113.%d", i)},
		}
		w.Identified(p, a, p.Edge.Identify(a))
	}
	// Output: edge untrusted_proxy
}
