package descriptors_test

import (
	"fmt"

	"github.com/sluice-mesh/sluice/pkg/descriptors"
)

func Example() {
	var k descriptors.Keyer
	fmt.Println(k.Key("edge", "api", descriptors.Value{Kind: "ip", Text: "203.0.113.7"}))
	// Output: {KuWOyFXH}4:edge3:api2:ip11:203.0.113.7
}

func ExampleSplit() {
	for _, s := range []string{"generic_key=login", "query=a=b", "remote_address"} {
		e, hasValue := descriptors.Split(s)
		fmt.Printf("%q %q %v\n", e.Key, e.Value, hasValue)
	}
	// Output:
	// "generic_key" "login" true
	// "query" "a=b" true
	// "remote_address" "" false
}
