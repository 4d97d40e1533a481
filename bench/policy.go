package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The limits of the lab: none is ever reached, but no bucket is full again as
// soon as it was charged, which would spare the store its work. "empty" is
// reached by the first request of the day.
const (
	hotLimit   = "{rate: 1000000000/1d}"
	keyLimit   = "{rate: 1000/1d, burst: 1000000}"
	emptyLimit = "{rate: 1/1d}"
	// leasedRule leases a thousand tokens at a time.
	leasedRule = "  - {name: leased, descriptor: [generic_key=leased], limits: [{rate: 100000/1s}], lease: {share: 1%, for: 100ms}}\n"
)

// requestRules is how many rules for requests the main policy has.
const requestRules = 50

// writePolicies writes the policies of the lab into a folder: "bench", and one
// for each number of rules, by name.
func writePolicies(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	texts := map[string]string{"bench": mainPolicy()}
	for _, n := range ruleCounts {
		texts[ruleDomain(n)] = manyRules(n)
	}
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func mainPolicy() string {
	var b strings.Builder
	b.WriteString("domain: bench\nrules:\n")
	for _, r := range []struct{ descriptor, limit string }{
		{"generic_key=hot", hotLimit}, {"user", keyLimit}, {"tenant", keyLimit}, {"generic_key=empty", emptyLimit},
	} {
		fmt.Fprintf(&b, "  - {name: %s, descriptor: [%s], limits: [%s]}\n", strings.ReplaceAll(r.descriptor, "=", ":"), r.descriptor, r.limit)
	}
	b.WriteString(leasedRule)
	for i := range requestRules {
		fmt.Fprintf(&b, "  - {name: service%d, match: {path: /service%d/*}, per: [ip], limits: [%s]}\n", i, i, keyLimit)
	}
	return b.String()
}

// ruleCounts are the numbers of rules that are compared, in steps of growth.
var ruleCounts = []int{10, 1_000, 10_000}

func ruleDomain(n int) string { return fmt.Sprint("rules", n) }

func manyRules(n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "domain: %s\nrules:\n", ruleDomain(n))
	for i := range n {
		fmt.Fprintf(&b, "  - {name: path%d, match: {path: /path%d/*}, limits: [%s]}\n", i, i, hotLimit)
		fmt.Fprintf(&b, "  - {name: entry%d, descriptor: [generic_key=entry%d], limits: [%s]}\n", i, i, hotLimit)
	}
	return b.String()
}
