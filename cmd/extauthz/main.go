// Command extauthz answers Envoy, over ext_authz and the rate limit service,
// whether a request may pass by the limits of a policy.
//
//	extauthz serve --policy policy.yaml
//	extauthz validate policy.yaml
package main

import "os"

func main() {
	ctx, stop := signals()
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)) //nolint:gocritic // stop has nothing left to do at exit
}
