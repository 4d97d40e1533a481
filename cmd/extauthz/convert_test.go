package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestConvert(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "mesh.yaml")
	if err := os.WriteFile(name, []byte("domain: mesh\ndescriptors:\n  - {key: a, value: b, rate_limit: {unit: hour, requests_per_unit: 5}}\n  - {key: q, quota_mode: true, rate_limit: {unit: day, requests_per_unit: 1}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"convert", name}, nil, &out, &errs)
	const want = `domain: mesh

rules:
  - name: a_b
    descriptor: [a=b]
    limits:
      - {rate: 5/1h, refill: aligned}
    stop: true
  - name: q
    descriptor: [q]
    limits:
      - {rate: 1/1d, refill: aligned}
    stop: true
`
	if code != exitOK || out.String() != want || errs.String() != "q: quota_mode: our rules deny each by itself\n" {
		t.Errorf("convert = %d\n%s\n%s, want %d\n%s", code, &out, &errs, exitOK, want)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"convert"}, "found 0 arguments, want one file"},
		{[]string{"convert", "a", "b"}, "found 2 arguments, want one file"},
		{[]string{"convert", filepath.Join(t.TempDir(), "none")}, "no such file"},
	} {
		errs.Reset()
		if code := run(t.Context(), tt.args, nil, &out, &errs); code == exitOK || !strings.Contains(errs.String(), tt.want) {
			t.Errorf("%v = %d, %s, want a failure with %q", tt.args, code, &errs, tt.want)
		}
	}
}

// A policy that could not be written must not look as if it had been.
func TestConvertWriteFails(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "mesh.yaml")
	writeFile(t, name, limitFile("mesh", "1"))
	out, in := io.Pipe()
	out.CloseWithError(errors.New("the disk is full"))
	var errs bytes.Buffer
	if code := run(t.Context(), []string{"convert", name}, nil, in, &errs); code != exitFailed || !strings.Contains(errs.String(), "the disk is full") {
		t.Errorf("convert to a full disk = %d, %s, want %d and why", code, &errs, exitFailed)
	}
}

// Files of one domain are refused, unless they shall be merged: all commands
// read them in one way.
func TestMergeDomains(t *testing.T) {
	t.Parallel()
	dir := runtimeFolder(t, t.TempDir(), map[string]string{
		"a.yaml": limitFile("mesh", "1"), "b.yaml": "domain: mesh\ndescriptors: [{key: b, rate_limit: {unit: day, requests_per_unit: 2}}]\n",
	})
	for _, test := range []struct {
		args []string
		code int
		part string
	}{
		{[]string{"validate", dir}, exitFailed, "have domains merged"},
		{[]string{"validate", "--merge-domains", dir}, exitOK, "ok: 2 rules in 1 file"},
		{[]string{"explain", "--policy", dir, "--descriptor", "b=x"}, exitFailed, "have domains merged"},
		{[]string{"explain", "--merge-domains", "--policy", dir, "--descriptor", "b=x"}, exitOK, "domain mesh"},
	} {
		var out bytes.Buffer
		if code := run(t.Context(), test.args, nil, &out, &out); code != test.code || !strings.Contains(out.String(), test.part) {
			t.Errorf("%v = %d, %s, want %d with %q", test.args, code, &out, test.code, test.part)
		}
	}
}
