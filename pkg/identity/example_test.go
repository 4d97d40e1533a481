package identity_test

import (
	"fmt"
	"net/netip"

	"github.com/sluice-mesh/sluice/pkg/identity"
)

func Example() {
	edge, err := identity.NewEdge(identity.EdgeSpec{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	if err != nil {
		fmt.Println(err)
		return
	}
	id := edge.Identify(&identity.Attributes{
		Source:  netip.MustParseAddr("10.0.0.5"),
		Headers: map[string]string{"x-forwarded-for": "6.6.6.6, 203.0.113.7, 10.0.0.3"},
	})
	fmt.Println(edge.Caller(id.Client), id.Evidence)
	// Output: 203.0.113.7 chain
}

func ExampleEdge_Caller() {
	var edge identity.Edge
	fmt.Println(edge.Caller(netip.MustParseAddr("::ffff:203.0.113.7")))
	fmt.Println(edge.Caller(netip.MustParseAddr("2001:db8:1:2:ffff::9")))
	// Output:
	// 203.0.113.7
	// 2001:db8:1:2::/64
}

func ExampleSource_Value() {
	user, err := identity.NewSource(identity.SourceSpec{Header: "X-User-Id"})
	if err != nil {
		fmt.Println(err)
		return
	}
	a := &identity.Attributes{Headers: map[string]string{"x-user-id": "alice"}}
	fmt.Println(user.Value(a, identity.Identity{Trusted: true}))
	_, ok := user.Value(a, identity.Identity{}) // anybody could have written that
	fmt.Println(ok)
	// Output:
	// alice true
	// false
}
