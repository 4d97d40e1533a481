package config

import (
	"fmt"
	"strings"
)

// A Fault is one setting that cannot be used. It never holds a secret.
type Fault struct {
	Setting string
	Found   string
	Want    string
	From    string // where it was found
}

// String says all of f in one line.
func (f Fault) String() string {
	return fmt.Sprintf("setting %s (from %s): found %s, want %s", f.Setting, f.From, f.Found, f.Want)
}

// Faults are all that is wrong with the settings, as an error.
type Faults []Fault

// Error returns one line for each fault.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}
