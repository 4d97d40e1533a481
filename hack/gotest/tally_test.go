package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSummary(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		skipFails bool
		events    string
		want      string
	}{
		{
			name: "each test counts once, a test with subtests as these",
			events: `
{"Action":"pass","Package":"p","Test":"TestA/x"}
{"Action":"pass","Package":"p","Test":"TestA/y"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
{"Action":"pass","Package":"p"}
{"Action":"pass","Package":"p","Test":"TestA/x"}`,
			want: "ok  \tp\t0.1s\n2 passed, 0 failed\n",
		},
		{
			name: "a test that fails once has failed",
			events: `
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}
{"Action":"pass","Package":"p","Test":"TestA"}`,
			want: "FAIL\tp TestA\n0 passed, 1 failed\n",
		},
		{
			name: "a parent that fails by itself is counted",
			events: `
{"Action":"pass","Package":"p","Test":"TestA/x"}
{"Action":"fail","Package":"p","Test":"TestA"}`,
			want: "FAIL\tp TestA\n1 passed, 1 failed\n",
		},
		{
			name:   "a package that does not build has failed",
			events: `{"Action":"fail","Package":"p"}`,
			want:   "FAIL\tp\n0 passed, 1 failed\n",
		},
		{
			name:   "a skip is no failure",
			events: `{"Action":"skip","Package":"p","Test":"TestA"}`,
			want:   "SKIP\tp TestA\n0 passed, 0 failed\n",
		},
		{
			name:      "a test that skips in one run has passed if it passed in another",
			skipFails: true,
			events: `
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestB"}
{"Action":"skip","Package":"p","Test":"TestB"}`,
			want: "2 passed, 0 failed\n",
		},
		{
			name:      "but in CI",
			skipFails: true,
			events:    `{"Action":"skip","Package":"p","Test":"TestA"}`,
			want:      "SKIP\tp TestA\n0 passed, 1 failed\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sum := tally{skipFails: c.skipFails, out: t.Output()}
			if err := read(strings.NewReader(c.events), &sum); err != nil {
				t.Fatalf("read(%s) = %v, want no error", c.events, err)
			}
			if diff := cmp.Diff(c.want, sum.summary()); diff != "" {
				t.Errorf("summary() differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOutputOfFailuresIsShown(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	sum := tally{out: &out}
	events := `
{"Action":"output","Package":"p","Test":"TestA","Output":"quiet\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"loud\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p","Test":"TestB"}
{"Action":"build-output","ImportPath":"q","Output":"does not build\n"}`
	if err := read(strings.NewReader(events), &sum); err != nil {
		t.Fatalf("read(%s) = %v, want no error", events, err)
	}
	if got, want := out.String(), "loud\ndoes not build\n"; got != want {
		t.Errorf("shown %q, want %q", got, want)
	}
}

// What a package dies of is shown, though the tests that it was in never end.
func TestUnendedTestsAreShown(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	y := tally{out: &out}
	for _, e := range []event{
		{Action: "output", Package: "p", Test: "TestA", Output: "panic: test timed out\n"},
		{Action: "output", Package: "q", Test: "TestB", Output: "runs still\n"},
		{Action: "fail", Package: "p"},
	} {
		y.add(e)
	}
	if got, want := out.String(), "panic: test timed out\n"; got != want {
		t.Errorf("after a package failed, shown is %q, want %q", got, want)
	}
}
