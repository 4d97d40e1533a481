// Gotest runs go test and says at the end what became of every test.
//
//	gotest ARGUMENTS [-- ARGUMENTS]...
//
// It runs go test once for each list of arguments and prints what failed as it
// fails. Its last line is "N passed, N failed": each test is counted once, and
// has passed if it passed and never failed; a test with subtests is counted as
// these. Where CI is set, a test that was skipped every time has failed. Where
// SUMMARY is set, what it says at the end is written to that file too.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		os.Exit(1)
	}
}

func run(args []string, getenv func(string) string, out io.Writer) error {
	t := tally{skipFails: getenv("CI") != "", out: out}
	for _, list := range split(args, "--") {
		if err := goTest(list, &t); err != nil {
			return err
		}
	}
	summary := t.summary()
	fmt.Fprint(out, summary)
	if file := getenv("SUMMARY"); file != "" {
		if err := os.WriteFile(file, []byte(summary), 0o644); err != nil {
			return err
		}
	}
	if t.failed() > 0 {
		return errors.New("tests failed")
	}
	return nil
}

// split cuts args at each separator.
func split(args []string, separator string) [][]string {
	i := slices.Index(args, separator)
	if i < 0 {
		return [][]string{args}
	}
	return append([][]string{args[:i]}, split(args[i+1:], separator)...)
}

// goTest runs go test with args and adds what it says to t. That tests failed
// is no error; that go test could not be understood is one.
func goTest(args []string, t *tally) error {
	began := time.Now()
	cmd := exec.Command("go", append([]string{"test", "-json", "-count=1"}, args...)...)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := read(stdout, t); err != nil {
		return errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return err
	}
	if exit != nil && t.failed() == 0 {
		return fmt.Errorf("go test: %w", exit)
	}
	fmt.Fprintf(t.out, "%.0f s  go test %s\n", time.Since(began).Seconds(), brief(args))
	return nil
}

// brief is args for a reader.
func brief(args []string) string {
	if len(args) > 3 {
		args = append(slices.Clone(args[:2]), "...")
	}
	return strings.Join(args, " ")
}

func read(r io.Reader, t *tally) error {
	for d := json.NewDecoder(r); ; {
		var e event
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read what go test says: %w", err)
		}
		t.add(e)
	}
}
