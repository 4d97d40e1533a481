package policyfile_test

import (
	"errors"
	"os"
	"path/filepath"
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

// What cannot even be looked at takes nothing from the rest, and neither does a
// folder that is away.
func TestLoadKeepingWhatCannotBeFound(t *testing.T) {
	t.Parallel()
	link := func(to, name string) func(string) error {
		return func(dir string) error { return os.Symlink(to, filepath.Join(dir, name)) }
	}
	for name, test := range map[string]struct {
		change func(dir string) error
		fault  bool
	}{
		"a link to nothing":    {link("nowhere", ".#a.yaml"), true},
		"a link to its folder": {link(".", "loop"), true},
		"a link far up":        {link("../..", "in/up"), true},
		"a link beside":        {link("a", "b"), true}, // a second file of one domain
		"a file that is away": {func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "a")), link("nowhere", "a")(dir))
		}, true},
		"a folder that is away": {func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, "in")), link("nowhere", "in")(dir))
		}, true},
		"all of it away": {func(dir string) error { return os.RemoveAll(dir) }, true},
		"nothing":        {func(string) error { return nil }, false},
	} {
		dir := folder(t)
		o := policyfile.Options{Paths: []string{dir + "/"}, Ratelimit: &policyfile.Ratelimit{}}
		before, faults := policyfile.LoadKeeping(o, nil)
		if faults.Err() != nil {
			t.Fatal(faults.Err())
		}
		if err := test.change(dir); err != nil {
			t.Fatal(err)
		}
		set, faults := policyfile.LoadKeeping(o, before)
		if len(set.Policies()) != 2 || (faults.Err() != nil) != test.fault {
			t.Errorf("LoadKeeping(%s) = %d domains and the faults %v, want both domains as they were, and faults: %v", name, len(set.Policies()), faults, test.fault)
		}
	}
}

// folder is one with a domain in it, and another in a folder of that.
func folder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "config")
	text := func(domain string) []byte {
		return []byte("domain: " + domain + "\ndescriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: 1}}]\n")
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "in"), 0o700),
		os.WriteFile(filepath.Join(dir, "a"), text("one"), 0o600), os.WriteFile(filepath.Join(dir, "in", "b"), text("two"), 0o600)); err != nil {
		t.Fatal(err)
	}
	return dir
}
