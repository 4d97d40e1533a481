package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluice-mesh/sluice/internal/bench"
)

func TestBench(t *testing.T) {
	t.Parallel()
	p := start(t, "--policy", policyFile(t, limited(30)), "--http-addr", "127.0.0.1:0")
	for _, tt := range []struct {
		args []string
		code int
		want map[bench.Answer]int64
		says string // in standard error
	}{
		{[]string{"ext_authz", p.grpc, "--path", "/api/{n}", "--peer", "10.0.0.0/8", "--keys", "1000000"}, exitOK, map[bench.Answer]int64{bench.OK: 50}, ""},
		{[]string{"ext_authz", p.grpc, "--path", "/api/x"}, exitOK, map[bench.Answer]int64{bench.OK: 30, bench.Denied: 20}, ""},
		{[]string{"http", p.http, "--path", "/api/y"}, exitOK, map[bench.Answer]int64{bench.OK: 30, bench.Denied: 20}, ""},
		{[]string{"rls", p.grpc, "--domain", "edge", "--descriptor", "generic_key=login", "--hits", "2"}, exitOK, map[bench.Answer]int64{bench.OK: 15, bench.Denied: 35}, ""},
		{[]string{"rls", p.grpc, "--domain", "edge", "--descriptor", "generic_key=login", "--all-ok"}, exitFailed, map[bench.Answer]int64{bench.Denied: 50}, "50 of 50 requests were not OK"},
	} {
		args := append([]string{"bench", "--json", "-n", "50", "-c", "4", "--timeout", "30s"}, tt.args...)
		code, stdout, stderr := ran(args, nil)
		var got bench.Report
		if err := json.Unmarshal([]byte(stdout), &got); err != nil {
			t.Fatalf("run(%q) writes %q: %v", args, stdout, err)
		}
		if code != tt.code || !strings.Contains(stderr, tt.says) || (tt.says == "") != (stderr == "") {
			t.Errorf("run(%q) = %d, %q, want %d, %q", args, code, stderr, tt.code, tt.says)
		}
		for answer, n := range tt.want {
			if got.Answers[answer] != n {
				t.Errorf("run(%q) counts %v, want %d of %s", args, got.Answers, n, answer)
			}
		}
	}
}

// Nobody is asked twice who does not listen.
func TestBenchNobody(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"ext_authz", "unix:" + t.TempDir() + "/none"},
		{"rls", "127.0.0.1:1", "--domain", "edge", "--descriptor", "a=b"},
		{"http", "127.0.0.1:1"},
	} {
		addr := args[1]
		args = append(args, "--json", "-d", "1h", "-c", "4", "--timeout", "30s", "--warm-up", "1h")
		code, stdout, stderr := ran(append([]string{"bench"}, args...), nil)
		if want := "nobody listens at " + addr + ", the connection was refused: start the server, "; code != exitFailed || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("run(%q) = %d, %q, %q, want %d and %q", args, code, stdout, stderr, exitFailed, want)
		}
	}
}

func TestBenchText(t *testing.T) {
	t.Parallel()
	p := start(t, "--policy", policyFile(t, limited(2)))
	code, stdout, stderr := ran([]string{"bench", "ext_authz", p.grpc, "--path", "/api/x", "-n", "4", "--timeout", "30s", "--progress"}, nil)
	if code != exitOK || !strings.HasPrefix(stdout, "ext_authz") || !strings.Contains(stdout, "4 requests") || !strings.Contains(stdout, "1 caller on 1 connection, for 1 key, ") || !strings.Contains(stdout, "denied     2, 50.00 %") {
		t.Errorf("run(bench) = %d, %q, %q, want 0 and what was answered", code, stdout, stderr)
	}
}
