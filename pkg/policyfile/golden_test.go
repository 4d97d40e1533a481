package policyfile_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/sluice-mesh/sluice/pkg/policyfile"
)

var update = flag.Bool("update", false, "rewrite the wanted output in testdata")

// Each file in testdata is a directory of policies and, as want, all faults of
// loading it, then the domains if it loads.
func TestGolden(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("Glob(testdata) = %v, %v, want some cases", names, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			golden(t, name)
		})
	}
}

func golden(t *testing.T, name string) {
	t.Helper()
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	files, want := fstest.MapFS{}, -1
	for i, f := range archive.Files {
		if f.Name == "want" {
			want = i
			continue
		}
		files[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	if want < 0 {
		t.Fatalf("%s has no file want", name)
	}
	got := loaded(policyfile.Options{FS: files, Paths: []string{"."}})
	if *update {
		archive.Files[want].Data = []byte(got)
		if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(archive.Files[want].Data), got); diff != "" {
		t.Errorf("Load(%s), want less, got more:\n%s", name, diff)
	}
}

// loaded is the outcome of Load as text.
func loaded(o policyfile.Options) string {
	set, faults := policyfile.Load(o)
	var b strings.Builder
	for _, f := range faults {
		b.WriteString(f.String() + "\n")
	}
	for _, p := range set.Policies() {
		b.WriteString("loaded " + p.Domain + "\n")
	}
	return b.String()
}
