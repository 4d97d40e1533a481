// Command extauthz answers Envoy, over ext_authz and the rate limit service,
// whether a request may pass by the limits of a policy.
//
//	extauthz serve --policy policy.yaml
//	extauthz validate policy.yaml
//	extauthz explain --policy policy.yaml 'GET /api/x' --peer 10.0.0.5
package main

import "os"

func main() {
	os.Exit(run(untilTold(), os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}
