package policyfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// A Fault is one thing wrong in a policy, and where.
type Fault struct {
	// File is the name that the file was read by. It is empty for what is
	// wrong with no file in particular.
	File string `json:"file,omitempty"`
	// Line and Column begin at 1; a column counts characters. 0 means the file
	// as a whole.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Path is the field: rules[2].limits[0].rate. It is empty where the text
	// is not even YAML.
	Path  string `json:"path,omitempty"`
	Found string `json:"found"`
	Want  string `json:"want"`
	// Do says what to do about it; it may be empty.
	Do string `json:"do,omitempty"`
	// Warning says that the policy works, but hardly as meant.
	Warning bool `json:"warning,omitempty"`
}

// String is one line of printable text, whatever the file holds:
//
//	edge.yaml:7:14: rules[2].limits[0].rate: found "20/10q", want tokens and a period, such as 20/10s; the units are ms, s, m, h, d and w
func (f Fault) String() string {
	var b strings.Builder
	if f.File != "" {
		b.WriteString(f.File)
		if f.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", f.Line, f.Column)
		}
		b.WriteString(": ")
	}
	if f.Warning {
		b.WriteString("warning: ")
	}
	if f.Path != "" {
		b.WriteString(f.Path + ": ")
	}
	fmt.Fprintf(&b, "found %s, want %s", f.Found, f.Want)
	if f.Do != "" {
		b.WriteString("; " + f.Do)
	}
	return strings.Map(printable, b.String())
}

// printable keeps r if it is harmless on a line of a log.
func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return unicode.ReplacementChar
}

// Faults are all that is wrong in the files of a policy, in the order of file,
// line and column. Warnings may be among them.
type Faults []Fault

// Error is one line for each fault.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// Err returns the faults without the warnings, nil if there are none left.
func (fs Faults) Err() error {
	if errs := fs.only(false); len(errs) > 0 {
		return errs
	}
	return nil
}

// Warnings returns the faults that leave the policy working.
func (fs Faults) Warnings() Faults { return fs.only(true) }

func (fs Faults) only(warning bool) Faults {
	var some Faults
	for _, f := range fs {
		if f.Warning == warning {
			some = append(some, f)
		}
	}
	return some
}

func (fs Faults) sort() {
	slices.SortStableFunc(fs, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
