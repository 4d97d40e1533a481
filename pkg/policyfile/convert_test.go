package policyfile_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/descriptors"
	"github.com/sluice-mesh/sluice/pkg/policy"
	"github.com/sluice-mesh/sluice/pkg/policyfile"
)

const convertible = `
domain: mesh
descriptors:
  - key: generic_key
    rate_limit: {unit: month, requests_per_unit: 100}
    descriptors: [{key: user, rate_limit: {unit: week, requests_per_unit: 7}}]
  - {key: generic_key, value: "log: in", rate_limit: {unit: minute, requests_per_unit: 5, name: login}}
  - {key: allow, value: "true"}
  - {key: allow, rate_limit: {unit: second, requests_per_unit: 1}}
  - {key: free, rate_limit: {unlimited: true}}
  - key: deep
    value: a
    descriptors:
      - {key: er, shadow_mode: true, rate_limit: [{rate: 10/30s, burst: 20, refill: greedy}, {unit: year, requests_per_unit: 1000}]}
  - {key: path, value: /api/*, rate_limit: {unit: hour, requests_per_unit: 9}}
  - {key: quota, quota_mode: true, rate_limit: {unit: hour, requests_per_unit: 9}}
`

// What is converted limits the same descriptors by the same limits.
func TestConvert(t *testing.T) {
	t.Parallel()
	text, notes, faults := policyfile.Convert("mesh.yaml", []byte(convertible))
	before, after := load(t, convertible), load(t, text)
	for _, pairs := range [][]string{
		{"generic_key", "x"},
		{"generic_key", "log: in"},
		{"generic_key", "x", "user", "u"},
		{"allow", "true"},
		{"allow", "false"},
		{"free", "1"},
		{"deep", "a"},
		{"deep", "a", "er", "1"},
		{"deep", "b", "er", "1"},
		{"quota", "1"},
		{"none", "1"},
	} {
		var d descriptors.Descriptor
		for i := 0; i < len(pairs); i += 2 {
			d = append(d, descriptors.Entry{Key: pairs[i], Value: pairs[i+1]})
		}
		if diff := cmp.Diff(limitsOf(before.ForDescriptor(d)), limitsOf(after.ForDescriptor(d))); diff != "" {
			t.Errorf("the limits of %v differ (-before +after):\n%s", d, diff)
		}
	}
	want := []string{
		"generic_key_log: in: what is not under it is looked for under generic_key too, where a tree would not",
		"deep_a.er: a rule in shadow stops nothing: a rule for the key alone counts beside it",
		"path_/api/*: a * stands for nothing in our rules: it and what is under it are left out",
		"quota: quota_mode: our rules deny each by itself",
	}
	if diff := cmp.Diff(want, notes, cmp.Transformer("sorted", sorted)); diff != "" || faults != nil {
		t.Errorf("Convert() = faults %v, notes (-want +got):\n%s", faults, diff)
	}
}

func sorted(all []string) map[string]bool {
	set := map[string]bool{}
	for _, s := range all {
		set[s] = true
	}
	return set
}

func load(t *testing.T, text string) *policy.Policy {
	t.Helper()
	set, faults := policyfile.Load(of(text))
	if set == nil {
		t.Fatalf("Load(%s) = %v, want a policy", text, faults)
	}
	return set.Domain("mesh")
}

// limitsOf are those of all that applies, by what they let pass. What charges
// nothing has none.
func limitsOf(applied []policy.Applied) []string {
	var all []string
	for _, a := range applied {
		if a.Unlimited {
			continue
		}
		for i := range a.Limits.Len() {
			l := a.Limits.At(i)
			all = append(all, strings.Join([]string{l.Per.String(), l.Refill.String(), string(rune(l.Tokens)), string(rune(l.Burst))}, " "))
		}
	}
	return all
}

func TestConvertRefuses(t *testing.T) {
	t.Parallel()
	text, _, faults := policyfile.Convert("edge.yaml", []byte("domain: edge\nrules: [{name: a, descriptor: [a], limits: [{rate: 1/1s}]}]\n"))
	const want = "edge.yaml:2:1: rules: found a policy of our own format, want descriptors, as envoyproxy/ratelimit has them; extauthz serve reads it as it is"
	if text != "" || faults.Error() != want {
		t.Errorf("Convert(a policy of ours) = %q, %v, want %s", text, faults, want)
	}
	text, _, faults = policyfile.Convert("mesh.yaml", []byte("domain: mesh\ndescriptors: [{key: a, rate_limit: {unit: fortnight}}]\n"))
	if text != "" || len(faults) == 0 || !strings.Contains(faults[0].String(), "mesh.yaml:2:") {
		t.Errorf("Convert() = %q, %v, want a fault with its place", text, faults)
	}
}
