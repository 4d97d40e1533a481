package policyfile_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/descriptors"
	"github.com/sluice-mesh/sluice/pkg/policyfile"
)

const small = "domain: edge\nrules: [{name: a, descriptor: [key], limits: [{rate: 1/1s}]}]\n"

func of(text string) policyfile.Options {
	return policyfile.Options{FS: fstest.MapFS{"edge.yaml": {Data: []byte(text)}}, Paths: []string{"edge.yaml"}}
}

// A ConfigMap's files are links into a folder that is swapped as a whole.
func TestLoadMountedConfigMap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	version := filepath.Join(dir, "..2026")
	must(t, os.Mkdir(version, 0o755))
	must(t, os.WriteFile(filepath.Join(version, "edge.yaml"), []byte(small), 0o644))
	must(t, os.Symlink("..2026", filepath.Join(dir, "..data")))
	must(t, os.Symlink("..data/edge.yaml", filepath.Join(dir, "edge.yaml")))
	must(t, os.Symlink("..data", filepath.Join(dir, "folder.yaml")))
	if got, want := loaded(policyfile.Options{Paths: []string{dir}}), "loaded edge\n"; got != want {
		t.Errorf("Load(ConfigMap) = %s, want %s", got, want)
	}
}

func TestLoadUnreadable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.Symlink("nowhere", filepath.Join(dir, "gone.yaml")))
	absent := filepath.Join(t.TempDir(), "absent.yaml")
	for _, test := range []struct {
		paths []string
		want  string
	}{
		{nil, "found no policy, want at least one file or directory\n"},
		{[]string{absent}, absent + ": found no such file or directory, want a file that can be read\n"},
		{[]string{dir}, filepath.Join(dir, "gone.yaml") + ": found no such file or directory, want a file that can be read\n"},
		{[]string{t.TempDir(), absent}, "no policy in this directory"},
		{[]string{""}, "found no such file or directory"},
	} {
		if got := loaded(policyfile.Options{Paths: test.paths}); !strings.Contains(got, test.want) {
			t.Errorf("Load(%q) = %q, want %q", test.paths, got, test.want)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestLoadBounds(t *testing.T) {
	t.Parallel()
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.Repeat(fmt.Sprintf("*%c,", c-1), 10))
	}
	for _, test := range []struct{ name, text, want string }{
		{"aliases of aliases", bomb, "edge.yaml:5:29: found an alias too many"},
		{"deep flow", "domain: " + strings.Repeat("[", 100_000), "nested more than 64 deep"},
		{"deep blocks", "domain: a\nrules:\n" + strings.Repeat("- ", 100_000), "nested more than 64 deep"},
		{"too large", "\xff" + strings.Repeat("#", policyfile.MaxFile), "found a larger file, want at most 16 MiB"},
		{"largest", "\xff" + strings.Repeat("#", policyfile.MaxFile-1), "edge.yaml:1:1: found the byte 0xff"},
		{"no UTF-8", "domain: ä\nrules: \xff\n", "edge.yaml:2:8: found the byte 0xff, want text in UTF-8"},
		{"UTF-16", "\xff\xfed\x00", "edge.yaml:1:1: found the byte 0xff, want text in UTF-8"},
		{"NUL", "domain: ä\x00\n", "edge.yaml:1:10: found the control character 0x00"},
		{"same key often", small + strings.Repeat("domain: a\n", 50_000), "found more faults than these"},
		{"unknown keys", small + manyKeys(), "found more faults than these"},
		{"wrong items", "domain: a\nrules: [" + strings.Repeat("x,", 50_000) + "]", "found more faults than these"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := loaded(of(test.text))
			if !strings.Contains(got, test.want) {
				t.Errorf("Load(%.40q…) = %.300s, want %s", test.text, got, test.want)
			}
			if n := strings.Count(got, "\n"); n > policyfile.MaxFaults+1 {
				t.Errorf("Load(%.40q…) = %d faults, want at most %d", test.text, n, policyfile.MaxFaults+1)
			}
		})
	}
}

func manyKeys() string {
	var b strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&b, "field%d: x\n", i)
	}
	return b.String()
}

func TestLoadDefaultDomain(t *testing.T) {
	t.Parallel()
	o := of("domain: edge\nrules: [{name: a, limits: [{rate: 1/1s}]}]\n")
	o.Default = "edge"
	set, faults := policyfile.Load(o)
	if set == nil || set.ForRequests("").Domain != "edge" || faults != nil {
		t.Errorf("Load(Default: edge) = %v, %v, want its policy for requests", set, faults)
	}
	o.Default = "elsewhere"
	if set, faults = policyfile.Load(o); set != nil || len(faults) != 1 || faults[0].Path != "--domain" {
		t.Errorf("Load(Default: elsewhere) = %v, %v, want a fault at --domain", set, faults)
	}
}

func TestLoadHashKey(t *testing.T) {
	t.Parallel()
	key := func(secret string) string {
		o := of(small)
		o.HashKey = []byte(secret)
		set, faults := policyfile.Load(o)
		if set == nil {
			t.Fatalf("Load(HashKey: %q) = %v, want a policy", secret, faults)
		}
		return set.Domain("edge").ForDescriptor(descriptors.Descriptor{{Key: "key", Value: strings.Repeat("x", 100)}})[0].Key
	}
	if one, other := key("one"), key("other"); one == other {
		t.Errorf("Load with two HashKeys = two policies with the key %s, want two keys", one)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	faults := policyfile.Faults{
		{File: "a.yaml", Line: 3, Column: 4, Path: "rules", Found: "x", Want: "y", Do: "z", Warning: true},
		{Found: "line\nbreak \x1b[31m", Want: "none"},
	}
	want := "a.yaml:3:4: warning: rules: found x, want y; z\nfound line�break �[31m, want none"
	if got := faults.Error(); got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
	var errs policyfile.Faults
	if !errors.As(faults.Err(), &errs) || !cmp.Equal(errs, faults[1:]) {
		t.Errorf("Err() = %v, want %v", faults.Err(), faults[1:])
	}
	if got := faults.Warnings(); !cmp.Equal(got, faults[:1]) || got.Err() != nil {
		t.Errorf("Warnings() = %v, want %v and no error", got, faults[:1])
	}
	line, err := json.Marshal(faults[0])
	if want := `{"file":"a.yaml","line":3,"column":4,"path":"rules","found":"x","want":"y","do":"z","warning":true}`; string(line) != want {
		t.Errorf("Marshal(%v) = %s, %v, want %s", faults[0], line, err, want)
	}
}
