package policyfile_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/tools/txtar"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/policyfile"
)

// No text makes Load panic; there is either a policy or a reason, and each
// reason is one printable line about a place that the text has.
func FuzzLoad(f *testing.F) {
	f.Add(wholePolicy)
	names, _ := filepath.Glob("testdata/*.txtar")
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			f.Add(string(file.Data))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		set, faults := policyfile.Load(of(text))
		if (set == nil) != (faults.Err() != nil) {
			t.Errorf("Load(%q) = %v, %v, want either a policy or a fault", text, set, faults)
		}
		lines := 1 + strings.Count(text, "\n") + strings.Count(text, "\r") + strings.Count(text, "\u0085") +
			strings.Count(text, "\u2028") + strings.Count(text, "\u2029")
		for _, fault := range faults {
			if line := fault.String(); strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) || len(line) > 8000 {
				t.Errorf("Load(%q) has the fault %q, want a printable line", text, line)
			}
			if fault.Line > lines {
				t.Errorf("Load(%q) has a fault at line %d, want one of %d", text, fault.Line, lines)
			}
		}
		if _, again := policyfile.Load(of(text)); !slices.Equal(faults, again) {
			t.Errorf("Load(%q) = other faults at the second time:\n%s", text, cmp.Diff(faults, again))
		}
	})
}
