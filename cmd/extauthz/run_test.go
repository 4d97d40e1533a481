package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"path/filepath"
	"strings"
	"testing"
)

// ran runs a command line that ends by itself.
func ran(args, environ []string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(context.Background(), args, environ, &out, &err)
	return code, out.String(), err.String()
}

func TestRunUsage(t *testing.T) {
	t.Parallel()
	good := policyFile(t, limited(2))
	settings := filepath.Join(t.TempDir(), "settings.yaml")
	writeFile(t, settings, "grpc-adr: x\n")
	for _, tt := range []struct {
		args []string
		want string // in what is said
	}{
		{nil, "no command"},
		{[]string{"frobnicate"}, `unknown command "frobnicate"`},
		{[]string{"sevre"}, "did you mean serve?"},
		{[]string{"explain"}, "no request given"},
		{[]string{"explain", "GET /x"}, "setting policy (from the default)"},
		{[]string{"explain", "GET", "/x", "/y"}, "want a method and a path"},
		{[]string{"explain", "-p", good, "/x", "--peer", "nobody"}, `peer: found "nobody"`},
		{[]string{"explain", "-p", good, "/x", "--header", "x"}, "want 'NAME: VALUE'"},
		{[]string{"explain", "-p", good, "/x", "--claim", "x"}, "want KEY=VALUE"},
		{[]string{"explain", "-p", good, "/x", "--metadata", "[]"}, "want a JSON object"},
		{[]string{"explain", "-p", good, "/x", "--descriptor", "a=b"}, "want one of the two"},
		{[]string{"explain", "-p", good, "--descriptor", "a=b", "--peer", "10.0.0.1"}, "want descriptors alone"},
		{[]string{"explain", "-p", good, "/x", "--hits", "3"}, "--hits is for --descriptor"},
		{[]string{"explain", "-p", good, "--server", "127.0.0.1:9002", "/x"}, "want one of the two"},
		{[]string{"bench", "http", "http://127.0.0.1:8080/x"}, "want host:port"},
		{[]string{"bench", "ext_authz", "127.0.0.1"}, `found the address "127.0.0.1", want host:port or unix:PATH`},
		{[]string{"bench"}, "found 0 arguments, want a door"},
		{[]string{"bench", "grpc", "x"}, `found the door "grpc", want ext_authz, rls or http`},
		{[]string{"bench", "rls", "x"}, "rls wants --domain"},
		{[]string{"bench", "ext_authz", "x", "--domain", "edge"}, "--context domain"},
		{[]string{"bench", "ext_authz", "x:1", "--descriptor", "a=b"}, "--descriptor is for rls, not for ext_authz"},
		{[]string{"bench", "rls", "x:1", "--domain", "edge", "--descriptor", "a=b", "--path", "/"}, "--path is for ext_authz and http, not for rls"},
		{[]string{"bench", "http", "x:1", "--peer", "10.0.0.0/8"}, "--peer is for ext_authz, not for http"},
		{[]string{"bench", "http", "unix:/x"}, `found the address "unix:/x", want host:port`},
		{[]string{"bench", "http", "x:1", "--path", "/{n}", "--keys", "9"}, "found 9 keys and no {key} in the request"},
		{[]string{"bench", "rls", "x:1", "--rate", "fast"}, `--rate: found "fast", want a number such as 0.5`},
		{[]string{"bench", "rls", "x:1", "--hits", "-1"}, `--hits: found "-1", want a whole number from 0 to 4294967295`},
		{[]string{"bench", "rls", "x:1", "-n", "1e6"}, `--requests: found "1e6", want a whole number`},
		{[]string{"bench", "rls", "x:1", "--pid", "me"}, `--pid: found "me", want whole numbers`},
		{[]string{"bench", "ext_authz", "x:1", "--peer", "nobody"}, `peer: found "nobody"`},
		{[]string{"bench", "ext_authz", "x:1", "--zipf", "1"}, "want more than 1"},
		{[]string{"--frobnicate"}, "unknown flag: --frobnicate"},
		{[]string{"serve", "--frobnicate"}, "unknown flag: --frobnicate"},
		{[]string{"serve", "--store-deadline", "soon"}, "--store-deadline"},
		{[]string{"serve", "--store-deadline", "25"}, `--store-deadline: found "25", want a duration such as 25ms or 10s`},
		{[]string{"serve", "--max-streams", "many"}, `--max-streams: found "many", want a whole number`},
		{[]string{"serve", "--memory-limit", "64MB"}, `--memory-limit: found "64MB", want a size such as 64MiB`},
		{[]string{"serve", "--pprof=no"}, `--pprof: found "no", want true or false`},
		{[]string{"completion"}, `found "", want one shell: bash, zsh or fish`},
		{[]string{"completion", "tcsh"}, `found "tcsh", want one shell: bash, zsh or fish`},
		{[]string{"serve", "x"}, `unknown argument "x"`},
		{[]string{"serve"}, "setting policy (from the default)"},
		{[]string{"serve", "--policy", good, "--store", "disk"}, `setting store (from flag --store): found "disk", want memory or redis`},
		{[]string{"serve", "--policy", good, "--config", settings}, "setting grpc-adr (from " + settings + ")"},
		{[]string{"validate"}, "no policy given"},
		{[]string{"validate", "--frobnicate"}, "unknown flag: --frobnicate"},
		{[]string{"version", "x"}, `unknown argument "x"`},
		{[]string{"health", "x"}, `unknown argument "x"`},
		{[]string{"health", "--addr", "dns:///%"}, "want host:port or unix:path"},
	} {
		code, stdout, stderr := ran(tt.args, nil)
		if code != exitUsage || !strings.Contains(stderr, tt.want) || !strings.HasSuffix(stderr, " --help\n") || strings.Contains(stderr, "Flags:") != (tt.args == nil) || stdout != "" {
			t.Errorf("run(%q) = %d, stdout %q, stderr %q, want 2, nothing, %q and who has help, with all flags only where nothing was said", tt.args, code, stdout, stderr, tt.want)
		}
	}
}

func TestRunHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--help"}, {"serve", "--help"}, {"validate", "--help"}, {"version", "--help"}, {"explain", "--help"}, {"health", "--help"}, {"bench", "--help"}, {"convert", "--help"}, {"ratelimit", "--help"}, {"completion", "--help"}, {"help", "serve"}} {
		code, stdout, stderr := ran(args, nil)
		if code != exitOK || !strings.Contains(stdout, "Examples:") || stderr != "" {
			t.Errorf("run(%q) = %d, stdout %q, stderr %q, want 0 and an example", args, code, stdout, stderr)
		}
	}
}

// What a shell is told to read calls the program, and gets what can follow.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for shell, want := range map[string]string{"bash": "__start_extauthz", "zsh": "#compdef extauthz", "fish": "complete -c extauthz"} {
		if code, stdout, stderr := ran([]string{"completion", shell}, nil); code != exitOK || !strings.Contains(stdout, want) || stderr != "" {
			t.Errorf("run(completion %s) = %d, %.100q, %q, want %q", shell, code, stdout, stderr, want)
		}
	}
	for _, tt := range []struct {
		args []string
		want string
	}{{[]string{"val"}, "validate\t"}, {[]string{"serve", "--store-d"}, "--store-deadline\t"}, {[]string{"completion", ""}, "fish\n"}} {
		if code, stdout, _ := ran(append([]string{"__complete"}, tt.args...), nil); code != exitOK || !strings.Contains(stdout, tt.want) {
			t.Errorf("run(__complete %q) = %d, %q, want %q", tt.args, code, stdout, tt.want)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	for _, arg := range []string{"version", "--version"} {
		code, stdout, _ := ran([]string{arg}, nil)
		if code != exitOK || !strings.HasPrefix(stdout, "extauthz ") || !strings.Contains(stdout, "go1.") {
			t.Errorf("run(%s) = %d %q, want 0 and the version", arg, code, stdout)
		}
	}
}

func TestServeFails(t *testing.T) {
	t.Parallel()
	good, bad := policyFile(t, limited(2)), policyFile(t, badPolicy)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().String()
	for _, tt := range []struct {
		args []string
		want []string // all in what is said
	}{
		{[]string{"--policy", bad}, []string{bad + ":5:", bad + ":6:", "1q", "colour"}},
		{[]string{"--policy", bad, "--policy", "/does/not/exist"}, []string{bad + ":5:", "/does/not/exist"}},
		{[]string{"--policy", good, "--domain", "other"}, []string{"other"}},
		{[]string{"--policy", good, "--grpc-addr", taken}, []string{"grpc-addr " + taken, "address already in use", "choose another"}},
		{[]string{"--policy", good, "--grpc-addr", "127.0.0.1:0", "--admin-addr", taken}, []string{"admin-addr " + taken, "address already in use"}},
		{[]string{"--policy", good, "--config", "/does/not/exist.yaml"}, []string{"/does/not/exist.yaml"}},
		{[]string{"--policy", good, "--hash-key-file", "/does/not/exist"}, []string{"hash-key-file", "/does/not/exist"}},
	} {
		code, stdout, stderr := ran(append([]string{"serve"}, tt.args...), nil)
		if code != exitFailed || stdout != "" || strings.Contains(stderr, "Usage:") {
			t.Errorf("run(serve %q) = %d, stdout %q, stderr %q, want 1, nothing and no usage", tt.args, code, stdout, stderr)
		}
		for _, part := range tt.want {
			if !strings.Contains(stderr, part) {
				t.Errorf("run(serve %q) says %q, want %q in it", tt.args, stderr, part)
			}
		}
	}
}

// A password is in nothing that is said.
func TestServeKeepsSecrets(t *testing.T) {
	t.Parallel()
	good := policyFile(t, limited(2))
	for _, url := range []string{"redis://:hunter2@", "redis://:hunter2@h:port", "http://:hunter2@h", "redis://:hunter2@h:1/x?y=z", "redis+cluster://:hunter2@h:1/2", "redis+sentinel://:hunter2@h:1", ":hunter2"} {
		code, stdout, stderr := ran([]string{"serve", "--policy", good}, []string{"SLUICE_REDIS_URL=" + url})
		if code == exitOK || strings.Contains(stdout+stderr, "hunter2") || !strings.Contains(stderr, "SLUICE_REDIS_URL") {
			t.Errorf("run(serve) with SLUICE_REDIS_URL=%s = %d %q, want a fault that names the variable and no password", url, code, stderr)
		}
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	good, bad := policyFile(t, limited(2)), policyFile(t, badPolicy)
	doubtful := policyFile(t, strings.Replace(limited(2), "per: [ip]", "per: [header.x-id]", 1))
	for _, tt := range []struct {
		args []string
		code int
		want []string // all in standard output
	}{
		{[]string{good}, exitOK, []string{"ok: 2 rules in 1 file\n"}},
		{[]string{filepath.Dir(good)}, exitOK, []string{"ok: 2 rules in 1 file\n"}},
		{[]string{doubtful}, exitOK, []string{doubtful + ":6:", "warning", "ok: 2 rules in 1 file\n"}},
		{[]string{bad}, exitFailed, []string{bad + ":5:", bad + ":6:"}},
		{[]string{good, bad}, exitFailed, []string{bad + ":5:"}},
		{[]string{"/does/not/exist"}, exitFailed, []string{"/does/not/exist"}},
		{[]string{"--domain", "other", good}, exitFailed, []string{"other"}},
	} {
		code, stdout, stderr := ran(append([]string{"validate"}, tt.args...), nil)
		if code != tt.code || stderr != "" {
			t.Errorf("run(validate %q) = %d, stderr %q, want %d and nothing", tt.args, code, stderr, tt.code)
		}
		for _, part := range tt.want {
			if !strings.Contains(stdout, part) {
				t.Errorf("run(validate %q) says %q, want %q in it", tt.args, stdout, part)
			}
		}
	}
}

func TestValidateJSON(t *testing.T) {
	t.Parallel()
	good, bad := policyFile(t, limited(2)), policyFile(t, badPolicy)
	type fault struct {
		File         string
		Line, Column int
		Path, Found  string
	}
	var got struct {
		OK           *bool
		Rules, Files int
		Faults       []fault
	}
	code, stdout, _ := ran([]string{"validate", "--json", good}, nil)
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitOK || got.OK == nil || !*got.OK || got.Rules != 2 || got.Files != 1 || got.Faults == nil {
		t.Errorf("run(validate --json) of a good policy = %d %s, want 0, ok, 2 rules, 1 file, no faults", code, stdout)
	}
	code, stdout, _ = ran([]string{"validate", "--json", bad}, nil)
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitFailed || got.OK == nil || *got.OK || len(got.Faults) < 2 {
		t.Fatalf("run(validate --json) of a bad policy = %d %s, want 1, not ok, two faults", code, stdout)
	}
	if f := got.Faults[0]; f.File != bad || f.Line != 5 || f.Column == 0 || f.Path == "" || f.Found == "" {
		t.Errorf("the first fault = %+v, want its place in line 5", f)
	}
}

func TestUnknownVariable(t *testing.T) {
	t.Parallel()
	_, _, stderr := ran([]string{"serve", "--policy", "/does/not/exist"}, []string{"SLUICE_GRPC_ADR=x"})
	if !strings.Contains(stderr, "SLUICE_GRPC_ADR") || !strings.Contains(stderr, "did you mean SLUICE_GRPC_ADDR?") {
		t.Errorf("run(serve) with SLUICE_GRPC_ADR says %q, want a warning that means SLUICE_GRPC_ADDR", stderr)
	}
}
