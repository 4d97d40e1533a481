package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// An event is a line of go test -json.
type event struct {
	Action     string
	Package    string
	ImportPath string // of build-output, instead of a package
	Test       string // "" is the package itself
	Output     string
}

// An id names a test, or a package where test is "".
type id struct{ pkg, test string }

func (i id) String() string { return strings.TrimSuffix(i.pkg+" "+i.test, " ") }

// An outcome is what became of a test. Of several runs the greatest counts.
type outcome int

const (
	skipped outcome = iota + 1
	passed
	failed
)

var outcomes = map[string]outcome{"pass": passed, "skip": skipped, "fail": failed}

// A tally adds up what go test says.
type tally struct {
	skipFails bool
	out       io.Writer // packages and what failed are shown here at once
	tests     map[id]outcome
	parents   map[id]bool // tests with subtests
	packages  []string    // go test's last word on each
	output    map[id]*strings.Builder
}

func (t *tally) add(e event) {
	at := id{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(t.out, e.Output)
	case "output":
		t.keep(at, e.Output)
	case "pass", "skip", "fail":
		t.end(at, outcomes[e.Action])
	}
}

// keep remembers what a test or package printed, until it ends.
func (t *tally) keep(at id, text string) {
	if at.test == "" && (strings.HasPrefix(text, "ok  \t") || strings.HasPrefix(text, "FAIL\t")) {
		t.packages = append(t.packages, text)
		fmt.Fprint(t.out, text)
	}
	if t.output == nil {
		t.output = map[id]*strings.Builder{}
	}
	if t.output[at] == nil {
		t.output[at] = new(strings.Builder)
	}
	t.output[at].WriteString(text)
}

func (t *tally) end(at id, o outcome) {
	if b := t.output[at]; b != nil && (o == failed || o == skipped && at.test != "") {
		fmt.Fprint(t.out, b.String())
	}
	delete(t.output, at)
	if at.test == "" && o == failed {
		t.unended(at.pkg)
	}
	if at.test == "" && (o != failed || t.failedIn(at.pkg)) {
		return // the package's tests speak for it
	}
	if t.tests == nil {
		t.tests, t.parents = map[id]outcome{}, map[id]bool{}
	}
	t.tests[at] = max(t.tests[at], o)
	if i := strings.LastIndexByte(at.test, '/'); i > 0 {
		t.parents[id{at.pkg, at.test[:i]}] = true
	}
}

// unended shows what the tests printed that had not ended when their package
// did: what it died of is among it.
func (t *tally) unended(pkg string) {
	for at, b := range t.output {
		if at.pkg == pkg {
			fmt.Fprint(t.out, b.String())
			delete(t.output, at)
		}
	}
}

func (t *tally) failedIn(pkg string) bool {
	for at, o := range t.tests {
		if at.pkg == pkg && o == failed {
			return true
		}
	}
	return false
}

// with returns the tests of one outcome, sorted. A test with subtests is not
// one of them, unless nothing but itself failed.
func (t *tally) with(o outcome) []string {
	var names []string
	for at, got := range t.tests {
		if got == o && (!t.parents[at] || o == failed && !t.childFailed(at)) {
			names = append(names, at.String())
		}
	}
	slices.Sort(names)
	return names
}

func (t *tally) childFailed(parent id) bool {
	for at, o := range t.tests {
		if o == failed && at.pkg == parent.pkg && strings.HasPrefix(at.test, parent.test+"/") {
			return true
		}
	}
	return false
}

func (t *tally) failed() int {
	n := len(t.with(failed))
	if t.skipFails {
		n += len(t.with(skipped))
	}
	return n
}

func (t *tally) summary() string {
	var b strings.Builder
	b.WriteString(strings.Join(t.packages, ""))
	for _, name := range t.with(skipped) {
		fmt.Fprintf(&b, "SKIP\t%s\n", name)
	}
	for _, name := range t.with(failed) {
		fmt.Fprintf(&b, "FAIL\t%s\n", name)
	}
	fmt.Fprintf(&b, "%d passed, %d failed\n", len(t.with(passed)), t.failed())
	return b.String()
}
