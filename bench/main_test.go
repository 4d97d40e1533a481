package main

import (
	"io"
	"strings"
	"testing"
)

// What cannot be measured is refused before an hour is spent on it.
func TestRunRefuses(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"RLS":               `found the argument "RLS"`,
		"-rounds 0":         "-rounds is 0",
		"-time 0":           "-time 0s",
		"-callers 0":        "-callers 0",
		"-conns 0":          "-conns 0",
		"-loaded 0":         "-loaded 0",
		"-only ( -rounds 1": "missing closing )",
		"-only Redis":       `-only "Redis" matches no work; those on Redis want -redis`,
	} {
		if err := run(strings.Fields(line), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("run(%s) = %v, want an error with %q", line, err, want)
		}
	}
}
