package main_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/test/stack"
)

const deadline = time.Minute

// startDemo builds the demo and runs it until it has said everything.
func startDemo(t *testing.T, args ...string) (p *stack.Process, said string) {
	t.Helper()
	need(t, stack.EnvoyPath)
	dir := t.TempDir()
	extauthz, err := stack.BuildExtauthz(dir)
	if err != nil {
		t.Fatal(err)
	}
	demo := filepath.Join(dir, "demo")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", demo, ".").CombinedOutput(); err != nil {
		t.Fatalf("build the demo: %v\n%s", err, out)
	}
	p, err = stack.Start("demo", demo, append(args, "-extauthz", extauthz, "-patience", deadline.String())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Stop(deadline)
		if t.Failed() {
			t.Logf("the demo said:\n%s", p.Output.String())
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	if _, err := p.Await(ctx, "Ctrl-C ends all of it."); err != nil {
		t.Fatal(err)
	}
	return p, p.Output.String()
}

// need skips the test where a part is not on this machine; in CI it fails.
func need(t *testing.T, find func() (string, error)) {
	t.Helper()
	if _, err := find(); errors.Is(err, stack.ErrNoPart) && os.Getenv("CI") == "" {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
}

var process = regexp.MustCompile(`(\w+) \(process (\d+)\)`)

// processes are the demo's parts and their ids.
func processes(said string) map[string]int {
	ids := map[string]int{}
	for _, m := range process.FindAllStringSubmatch(said, -1) {
		ids[m[1]], _ = strconv.Atoi(m[2])
	}
	return ids
}

func TestDemo(t *testing.T) {
	t.Parallel()
	// Whether this succeeds or not, the port is taken.
	if l, err := net.Listen("tcp4", "127.0.0.1:10000"); err == nil {
		t.Cleanup(func() { l.Close() })
	}
	for store, parts := range map[string][]string{
		"memory": {"envoy", "extauthz"},
		"redis":  {"envoy", "extauthz", "redis"},
	} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			if store == "redis" {
				need(t, stack.RedisPath)
			}
			p, said := startDemo(t, "-store", store)
			if strings.Contains(said, "127.0.0.1:10000") {
				t.Error("the demo is on port 10000, want the next that was free")
			}
			ids := processes(said)
			for _, part := range parts {
				if ids[part] == 0 {
					t.Errorf("no process of %s is named, want %v", part, parts)
				}
			}
			keepsPromises(t, said)
			interrupt(t, p)
			for part, id := range ids {
				if err := syscall.Kill(id, 0); !errors.Is(err, syscall.ESRCH) {
					t.Errorf("after Ctrl-C %s, process %d: %v, want it gone", part, id, err)
				}
			}
		})
	}
}

// interrupt does what Ctrl-C does, and wants the demo to end well.
func interrupt(t *testing.T, p *stack.Process) {
	t.Helper()
	if err := p.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Done():
	case <-time.After(deadline):
		t.Fatalf("the demo did not end within %v of SIGINT", deadline)
	}
	if err := p.Err(); err != nil {
		t.Error(err)
	}
}

func TestDemoEndsWithItsParts(t *testing.T) {
	t.Parallel()
	p, said := startDemo(t)
	ids := processes(said)
	if err := syscall.Kill(ids["envoy"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Done():
	case <-time.After(deadline):
		t.Fatalf("the demo did not end within %v of Envoy", deadline)
	}
	if p.Err() == nil {
		t.Error("the demo ended with 0 after Envoy was killed, want an error")
	}
	if want := "envoy ended by itself"; !strings.Contains(p.Output.String(), want) {
		t.Errorf("the demo does not say %q", want)
	}
	if err := syscall.Kill(ids["extauthz"], 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("extauthz, process %d: %v, want it gone", ids["extauthz"], err)
	}
}

var (
	advice  = regexp.MustCompile(`(?m)^  curl .*?(http://[^\s']+)'?\n      (.+)$`)
	oneCode = regexp.MustCompile(`^(\d{3}), and the header ([a-z-]+): (\d+)?`)
	codes   = regexp.MustCompile(`^(\d{3} )+\d{3}`)
)

// keepsPromises does the three things that the demo says to try, and wants
// the answers that it says.
func keepsPromises(t *testing.T, said string) {
	t.Helper()
	found := advice.FindAllStringSubmatch(said, -1)
	if len(found) != 3 {
		t.Fatalf("%d lines to try, want 3", len(found))
	}
	for _, m := range found {
		url, promise := m[1], m[2]
		if want := codes.FindString(promise); want != "" {
			if got := statuses(t, url); got != want {
				t.Errorf("%s: %s, want %s", url, got, want)
			}
			continue
		}
		want := oneCode.FindStringSubmatch(promise)
		if want == nil {
			t.Fatalf("%s: the promise %q is none that this test knows", url, promise)
		}
		resp := get(t, url)
		value := resp.Header.Get(want[2])
		if strconv.Itoa(resp.StatusCode) != want[1] || value == "" || want[3] != "" && value != want[3] {
			t.Errorf("%s: %d, %s: %q, want %s", url, resp.StatusCode, want[2], value, promise)
		}
	}
}

// statuses does what curl makes of a url that ends in [1-N].
func statuses(t *testing.T, url string) string {
	t.Helper()
	before, n, _ := strings.Cut(strings.TrimSuffix(url, "]"), "[1-")
	last, err := strconv.Atoi(n)
	if err != nil {
		t.Fatalf("%s: %v", url, err)
	}
	var all []string
	for i := range last {
		all = append(all, strconv.Itoa(get(t, fmt.Sprint(before, i+1)).StatusCode))
	}
	return strings.Join(all, " ")
}

func get(t *testing.T, url string) *http.Response {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp
}
