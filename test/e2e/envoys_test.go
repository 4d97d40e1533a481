package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/test/stack"
)

// published is a configuration of envoy/ that has a policy of its own.
func published(name string) setup {
	return setup{config: "envoy/" + name + ".yaml", policy: "envoy/" + name + ".policy.yaml", store: "memory"}
}

// Each file in envoy/ is tested: started by a real Envoy in one of these.
func TestEnvoyFilesAreTested(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(must(t)(stack.Root()), "envoy", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	tests := ""
	for _, name := range []string{"envoys_test.go", "edge_test.go", "httpcheck_test.go", "mtls_test.go", "grpc_test.go"} {
		tests += readFile(t, name)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		base := strings.TrimSuffix(name, ".policy")
		if !strings.Contains(tests, `"`+base+`"`) && !strings.Contains(tests, name+".yaml") {
			t.Errorf("no test starts envoy/%s.yaml", name)
		}
	}
	readme := readFile(t, filepath.Join(must(t)(stack.Root()), "envoy", "README.md"))
	for _, file := range files {
		if name := filepath.Base(file); !strings.Contains(readme, "]("+name+")") {
			t.Errorf("envoy/README.md has no link to %s", name)
		}
	}
}

// Whom ext_authz denies takes nothing from what all share by RLS.
func TestEdgeBoth(t *testing.T) {
	t.Parallel()
	y := start(t, published("edge-both"))
	anna, ben := y.from(anna, edgePort), y.from(ben, edgePort)
	all := anna.admits(t, 10, http.MethodGet, "/search")
	all[0].wants(t, "X-RateLimit-Limit", "10", "X-RateLimit-Remaining", "9")
	if got := len(all[0].header.Values("X-RateLimit-Limit")); got != 1 {
		t.Errorf("X-RateLimit-Limit came %d times, want once", got)
	}
	denied := ben.admits(t, 5, http.MethodGet, "/search")[5] // what anna left of 15
	if wait := denied.number(t, "Retry-After"); wait < 1 || wait > 60 {
		t.Errorf("Retry-After of the rate limit service: %d, want 1 to 60", wait)
	}
	denied.wants(t, "X-Envoy-Ratelimited", "true")
	ben.admits(t, 3, http.MethodGet, "/elsewhere") // 7 of his 10 went to /search
	for _, e := range y.sluices {
		if err := e.Stop(stopTime); err != nil {
			t.Fatal(err)
		}
	}
	if got := anna.one(t, http.MethodGet, "/search").status; got != http.StatusOK {
		t.Errorf("GET /search without Sluice: %d, want %d", got, http.StatusOK)
	}
}

// Behind the edge a caller is who the edge says, if it is the edge that says
// it.
func TestSidecar(t *testing.T) {
	t.Parallel()
	s := published("sidecar")
	s.listen = []int{inboundPort}
	const edge = "127.0.0.10"
	s.editPolicy = func(text string) string { return strings.Replace(text, "10.0.0.0/8", edge+"/32", 1) }
	y := start(t, s)
	c := y.from(edge, inboundPort)
	c.admits(t, 5, http.MethodGet, "/", "X-Forwarded-For", "203.0.113.1")
	c.admits(t, 5, http.MethodGet, "/", "X-Forwarded-For", "6.6.6.6, 203.0.113.2")
	c.admits(t, 0, http.MethodGet, "/", "X-Forwarded-For", "6.6.6.7, 203.0.113.2")
	c.admits(t, 5, http.MethodGet, "/", "X-Forwarded-For", "203.0.113.1", "X-User-Id", "anna")
	c.admits(t, 0, http.MethodGet, "/", "X-Forwarded-For", "203.0.113.3", "X-User-Id", "anna")
	stranger := y.from(anna, inboundPort)
	stranger.admits(t, 5, http.MethodGet, "/", "X-Forwarded-For", "203.0.113.4", "X-User-Id", "ben")
	stranger.admits(t, 0, http.MethodGet, "/", "X-Forwarded-For", "203.0.113.5", "X-User-Id", "carl")
	for range 7 {
		stranger.one(t, http.MethodGet, "/healthz").wants(t, "X-RateLimit-Limit", "")
	}
	if err := y.sluices[0].Stop(stopTime); err != nil {
		t.Fatal(err)
	}
	if got := stranger.one(t, http.MethodGet, "/").status; got != http.StatusOK {
		t.Errorf("GET / without Sluice: %d, want %d", got, http.StatusOK)
	}
}

// A route says what a request costs, for whom another limit holds, and whether
// anybody is asked at all.
func TestRoutes(t *testing.T) {
	t.Parallel()
	y := start(t, published("routes"))
	c := y.from(anna, edgePort)
	for i, want := range []answerOf{{"10", "6", 200}, {"10", "2", 200}, {"10", "2", 429}} {
		got := c.one(t, http.MethodGet, "/report")
		if diff := cmp.Diff(want, limitOf(got), cmp.AllowUnexported(answerOf{})); diff != "" {
			t.Errorf("GET /report, request %d (-want +got):\n%s", i+1, diff)
		}
	}
	c.admits(t, 2, http.MethodGet, "/elsewhere")
	for range 12 {
		c.one(t, http.MethodGet, "/healthz").wants(t, "X-RateLimit-Limit", "")
	}
	partner := y.from(ben, edgePort)
	partner.host = "partner.example"
	partner.admits(t, 20, http.MethodGet, "/report") // the host's words, not the other host's route
	y.from("127.0.0.5", edgePort).admits(t, 3, http.MethodGet, "/export")
	y.from("127.0.0.6", edgePort).admits(t, 2, http.MethodGet, "/tenant")
}

// answerOf is what an answer says of a limit.
type answerOf struct {
	limit, remaining string
	status           int
}

func limitOf(a answer) answerOf {
	return answerOf{a.header.Get("X-RateLimit-Limit"), a.header.Get("X-RateLimit-Remaining"), a.status}
}

// Without the metadata that brings a limit, the rule's own holds.
func TestRoutesWithoutMetadata(t *testing.T) {
	t.Parallel()
	s := published("routes")
	s.edit = func(text string) string {
		return strings.Replace(text, "metadata_namespace: tenant", "metadata_namespace: other", 1)
	}
	y := start(t, s)
	y.from(anna, edgePort).admits(t, 5, http.MethodGet, "/tenant")
}

// What an answer took is charged after it, to who asked; who has gone over the
// limit waits.
func TestAfterwards(t *testing.T) {
	t.Parallel()
	y := start(t, published("afterwards"))
	c := y.from(anna, edgePort)
	for range 20 {
		c.one(t, http.MethodGet, "/").wants(t, "X-RateLimit-Remaining", "100", "X-RateLimit-Limit", `100, 100;w=60;name="tokens"`)
	}
	left := func(want string) func() bool {
		return func() bool { return c.one(t, http.MethodGet, "/").header.Get("X-RateLimit-Remaining") == want }
	}
	if got := c.one(t, http.MethodGet, "/", "X-Cost", "60").status; got != http.StatusOK {
		t.Errorf("GET / at a cost of 60 of 100: %d, want %d", got, http.StatusOK)
	}
	eventually(t, "60 tokens are charged", left("40"))
	if got := c.one(t, http.MethodGet, "/", "X-Cost", "90").status; got != http.StatusOK {
		t.Errorf("GET / at a cost of 90 with 40 left: %d, want %d", got, http.StatusOK)
	}
	eventually(t, "a denial", func() bool { return c.one(t, http.MethodGet, "/").status == http.StatusTooManyRequests })
	if wait := c.one(t, http.MethodGet, "/").number(t, "Retry-After"); wait < 1 || wait > 60 {
		t.Errorf("Retry-After with 50 owed: %d, want 1 to 60, the end of the period", wait)
	}
	if got := y.from(ben, edgePort).one(t, http.MethodGet, "/").status; got != http.StatusOK {
		t.Errorf("GET / of another: %d, want %d", got, http.StatusOK)
	}
}

// Of two replicas one is killed, or drains as it should: no request fails, and
// none passes unasked.
func TestReplicas(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "drained": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := start(t, setup{
				config: "envoy/replicas.yaml", policy: "envoy/policy.yaml", store: "redis", sluices: []int{sluicePort, secondSluice},
				args: []string{"--drain-delay", "3s"}, mortal: true,
			})
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var asked atomic.Int64
			failed := make(chan error, 8)
			for i := range cap(failed) {
				c := y.from(fmt.Sprintf("127.0.1.%d", i+1), edgePort)
				go func() { failed <- c.keepAsking(ctx, &asked) }()
			}
			more := func() {
				t.Helper()
				before := asked.Load()
				eventually(t, "more requests", func() bool { return asked.Load() > before+300 || len(failed) > 0 })
			}
			more()
			y.allDecided(t)
			if err := y.sluices[0].Signal(end); err != nil {
				t.Fatal(err)
			}
			<-y.sluices[0].Done()
			more()
			stop()
			for range cap(failed) {
				if err := <-failed; err != nil {
					t.Error(err)
				}
			}
			if got := y.upstream.Unasked(); got != 0 {
				t.Errorf("%d of %d requests passed unasked while a replica was %s, want none", got, asked.Load(), name)
			}
		})
	}
}

// keepAsking wants an answer of Sluice to each request, until ctx ends.
func (c *client) keepAsking(ctx context.Context, asked *atomic.Int64) error {
	for ctx.Err() == nil {
		a, err := c.ask(ctx, http.MethodGet, "/hello")
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case a.status != http.StatusOK && a.status != http.StatusTooManyRequests || a.header.Get("X-RateLimit-Limit") != "5":
			return fmt.Errorf("GET /hello: %d %v, want an answer by the limit", a.status, a.header)
		}
		asked.Add(1)
	}
	return nil
}

// eventually waits until it is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !so(); {
		if time.Now().After(deadline) {
			t.Fatalf("not after %v: %s", patience, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
