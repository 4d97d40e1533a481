package e2e_test

import (
	"context"
	"net/http"
	"testing"
)

func edge(config string) setup {
	return setup{config: "envoy/" + config, policy: "envoy/policy.yaml", store: "memory"}
}

func TestEdgeExtAuthz(t *testing.T) {
	t.Parallel()
	y := start(t, edge("edge-extauthz.yaml"))
	c := y.from(anna, edgePort)
	hello := c.admits(t, 5, http.MethodGet, "/hello")
	hello[0].wants(t, "X-RateLimit-Limit", "5", "X-RateLimit-Remaining", "4", "X-RateLimit-Reset", "10", "Retry-After", "")
	hello[5].wants(t, "X-RateLimit-Limit", "5", "X-RateLimit-Remaining", "0", "X-Envoy-Ratelimited", "true")
	if got := hello[5].body; got != "" {
		t.Errorf("the body of a bare denial: %q, want none", got)
	}
	login := c.admits(t, 3, http.MethodPost, "/login")
	login[3].wants(t, "Content-Type", "application/json")
	if got, want := login[3].body, `{"error":"too many tries","retry_after":`+login[3].header.Get("Retry-After")+`}`; got != want {
		t.Errorf("the body of a denied login: %q, want %q", got, want)
	}
	for range 7 {
		for _, path := range []string{"/healthz", "/login", "/elsewhere"} {
			a := c.one(t, http.MethodGet, path)
			a.wants(t, "X-RateLimit-Limit", "", "X-RateLimit-Remaining", "")
			if a.status != http.StatusOK {
				t.Errorf("GET %s: %d, want %d", path, a.status, http.StatusOK)
			}
		}
	}
	y.from(ben, edgePort).admits(t, 5, http.MethodGet, "/hello")
	hello[6].obey(t, 10)
	c.admits(t, 5, http.MethodGet, "/hello")
}

// Envoy and the policy agree on what a path is.
func TestEdgePaths(t *testing.T) {
	t.Parallel()
	y := start(t, edge("edge-extauthz.yaml"))
	c := y.from(anna, edgePort)
	for i, path := range []string{"/hello?a=/x", "//hello", "/x/../hello", "/%68ello", "/./hello", "/hello"} {
		want := http.StatusOK
		if i >= 5 {
			want = http.StatusTooManyRequests
		}
		if got := c.one(t, http.MethodGet, path).status; got != want {
			t.Errorf("GET %s, request %d: %d, want %d", path, i+1, got, want)
		}
	}
}

func TestEdgeRLS(t *testing.T) {
	t.Parallel()
	y := start(t, edge("edge-rls.yaml"))
	c := y.from(anna, edgePort)
	hello := c.admits(t, 5, http.MethodGet, "/hello")
	const limit = `5, 5;w=10;name="hello-rls"`
	hello[0].wants(t, "X-RateLimit-Limit", limit, "X-RateLimit-Remaining", "4", "X-RateLimit-Reset", "10")
	hello[5].wants(t, "X-RateLimit-Limit", limit, "X-RateLimit-Remaining", "0", "X-Envoy-Ratelimited", "true")
	c.one(t, http.MethodGet, "/elsewhere").wants(t, "X-RateLimit-Limit", "")
	forged := c.one(t, http.MethodGet, "/hello", "X-Forwarded-For", "203.0.113.7")
	if forged.status != http.StatusTooManyRequests {
		t.Errorf("with an address of its own choice: %d, want %d", forged.status, http.StatusTooManyRequests)
	}
	y.from(ben, edgePort).admits(t, 5, http.MethodGet, "/hello")
}

// Without Sluice requests pass, as the published files say, and the upstream
// is told.
func TestEdgeWithoutSluice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config  string
		unasked int64 // by ext_authz alone is the upstream told
	}{
		{"edge-extauthz.yaml", 7},
		{"edge-rls.yaml", 0},
	} {
		t.Run(c.config, func(t *testing.T) {
			t.Parallel()
			y := start(t, edge(c.config))
			if err := y.sluices[0].Stop(stopTime); err != nil {
				t.Fatal(err)
			}
			for range 7 {
				if got := y.from(anna, edgePort).one(t, http.MethodGet, "/hello").status; got != http.StatusOK {
					t.Errorf("GET /hello: %d, want %d", got, http.StatusOK)
				}
			}
			if got := y.upstream.Unasked(); got != c.unasked {
				t.Errorf("the upstream was told of %d requests that nobody decided about, want %d", got, c.unasked)
			}
		})
	}
}

// Sluice is told to end while requests run: it drains, and none of them loses
// its answer.
func TestDrain(t *testing.T) {
	t.Parallel()
	y := start(t, edge("edge-extauthz.yaml"))
	f := &traffic{path: "/hello", changed: make(chan struct{}, 1)}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.run(ctx, y.from(anna, edgePort))
	}()
	f.until(t, "the first denial", f.more(1))
	if err := y.sluices[0].Stop(stopTime); err != nil {
		t.Error(err)
	}
	f.until(t, "a request that passes unasked", func() bool { return f.admitted.Load() > 5 })
	stop()
	<-done
	if failed := f.failed.Load(); failed != nil {
		t.Errorf("a request had no answer: %v", failed)
	}
}
