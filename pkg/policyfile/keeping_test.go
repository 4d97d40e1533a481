package policyfile_test

import (
	"slices"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/policyfile"
)

// A file with faults takes nothing from other domains, and leaves its own as it
// was.
func TestLoadKeeping(t *testing.T) {
	t.Parallel()
	file := func(domain, key string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("domain: " + domain + "\ndescriptors: [{key: " + key + ", rate_limit: {unit: day, requests_per_unit: 1}}]\n")}
	}
	bad := &fstest.MapFile{Data: []byte("domain: [\n")}
	load := func(files fstest.MapFS, merge bool, before fstest.MapFS) []string {
		o := policyfile.Options{Paths: []string{"."}, FS: before, Merge: merge, Ratelimit: &policyfile.Ratelimit{}}
		set, _ := policyfile.LoadKeeping(o, nil)
		o.FS = files
		set, _ = policyfile.LoadKeeping(o, set)
		var rules []string
		for _, p := range set.Policies() {
			for _, r := range p.Rules() {
				rules = append(rules, r.Domain+" "+r.Name)
			}
		}
		slices.Sort(rules)
		return rules
	}
	for name, test := range map[string]struct {
		before, files fstest.MapFS
		merge         bool
		want          []string
	}{
		"new beside a bad one":      {nil, fstest.MapFS{"a": bad, "b": file("b", "x")}, false, []string{"b x"}},
		"bad, and the other edited": {fstest.MapFS{"a": file("a", "x"), "b": file("b", "x")}, fstest.MapFS{"a": bad, "b": file("b", "y")}, false, []string{"a x", "b y"}},
		"bad by its domain":         {fstest.MapFS{"a": file("a", "x")}, fstest.MapFS{"c": file("a", "[]")}, false, []string{"a x"}},
		"moved, and the old left":   {fstest.MapFS{"a": file("a", "x")}, fstest.MapFS{"a": bad, "b": file("a", "y")}, false, []string{"a y"}},
		"a second of one domain":    {fstest.MapFS{"a": file("a", "x"), "b": file("b", "x")}, fstest.MapFS{"a": file("a", "y"), "b": file("a", "z")}, false, []string{"a y", "b x"}},
		"one of two merged":         {fstest.MapFS{"a": file("a", "x"), "b": file("a", "y")}, fstest.MapFS{"a": bad, "b": file("a", "z")}, true, []string{"a x", "a y"}},
		"gone":                      {fstest.MapFS{"a": file("a", "x"), "b": file("b", "x")}, fstest.MapFS{"b": file("b", "x")}, false, []string{"b x"}},
	} {
		if got := load(test.files, test.merge, test.before); !cmp.Equal(got, test.want) {
			t.Errorf("LoadKeeping(%s) = rules %q, want %q", name, got, test.want)
		}
	}
}
