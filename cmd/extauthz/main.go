// Command extauthz answers Envoy, over ext_authz and the rate limit service,
// whether a request may pass by the limits of a policy.
//
//	extauthz serve --policy policy.yaml
//	extauthz validate policy.yaml
//	extauthz explain --policy policy.yaml 'GET /api/x' --peer 10.0.0.5
package main

import (
	"os"
	"path/filepath"
)

func main() {
	os.Exit(run(untilTold(), commandLine(os.Args), os.Environ(), os.Stdout, os.Stderr))
}

// commandLine is what follows the program's name in args. A program that is
// called ratelimit is that command, as where it takes the place of another.
func commandLine(args []string) []string {
	if filepath.Base(args[0]) == "ratelimit" {
		return append([]string{"ratelimit"}, args[1:]...)
	}
	return args[1:]
}
