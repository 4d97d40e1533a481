package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-mesh/sluice/internal/bench"
	"github.com/sluice-mesh/sluice/test/stack"
)

// TestRun soaks for some seconds, and has the summary on a page.
func TestRun(t *testing.T) {
	t.Parallel()
	if _, err := stack.RedisPath(); errors.Is(err, stack.ErrNoPart) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("before\n"+begin+"old\n"+end+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), []string{"-time", "8s", "-probe", "1s", "-deadline", "30s", "-write", page}, t.Output()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"before\n" + begin + "| 8s,", "| ext_authz |", "| rls |", "| resident memory |", end + "after\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("run(-write) wrote %s, want %q in it", text, want)
		}
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	flat := sample{rss: 50 << 20, goroutines: 40, files: 30}
	for name, c := range map[string]struct {
		last sample
		door bench.Report
		want string
	}{
		"flat":       {flat, bench.Report{Requests: 9}, ""},
		"memory":     {sample{rss: 60 << 20, goroutines: 40, files: 30}, bench.Report{Requests: 9}, "resident memory grew from 50.0 to 60.0 MiB"},
		"goroutines": {sample{rss: 50 << 20, goroutines: 60, files: 30}, bench.Report{Requests: 9}, "goroutines grew from 40.0 to 60.0"},
		"files":      {sample{rss: 50 << 20, goroutines: 40, files: 50}, bench.Report{Requests: 9}, "open files grew"},
		"errors":     {sample{rss: 50 << 20, goroutines: 40, files: 30, storeErrors: 1, causes: []string{`{cause="full"} 1`}}, bench.Report{Requests: 9}, `1 errors of the store and 0 panics are counted [{cause="full"} 1]`},
		"no answer":  {flat, bench.Report{Requests: 9, Unanswered: 2, FirstError: "gone"}, "2 of 9 requests had no answer: gone"},
		"nothing":    {flat, bench.Report{}, "0 of 0 requests"},
	} {
		r := result{doors: []bench.Report{c.door}}
		for i := range 100 {
			r.samples = append(r.samples, flat)
			if i >= 50 {
				r.samples[i] = c.last
			}
		}
		got := ""
		if err := r.verdict(); err != nil {
			got = err.Error()
		}
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("verdict(%s) = %q, want %q", name, got, c.want)
		}
	}
}
