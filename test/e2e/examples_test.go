package e2e_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The addresses of clients. The policy of the example identities trusts proxy.
const (
	anna  = "127.0.0.2"
	proxy = "127.0.0.3"
	ben   = "127.0.0.4"
)

// onEachStore runs test on the example called name, with each store.
func onEachStore(t *testing.T, name string, test func(t *testing.T, y *system), listen ...int) {
	t.Helper()
	for _, store := range []string{"memory", "redis"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			s := example(name, store)
			s.listen = listen
			y := start(t, s)
			test(t, y)
			if n := y.upstream.Unasked(); n != 0 {
				t.Errorf("%d requests passed without an answer from Sluice, want 0", n)
			}
		})
	}
}

func example(name, store string) setup {
	return setup{config: "examples/" + name + "/envoy.yaml", policy: "examples/" + name + "/policy.yaml", store: store}
}

func TestLocalWeb(t *testing.T) {
	t.Parallel()
	onEachStore(t, "local-web", func(t *testing.T, y *system) {
		c := y.from(anna, edgePort)
		hello := c.admits(t, 5, http.MethodGet, "/hello")
		hello[0].wants(t, "X-RateLimit-Limit", "5", "X-RateLimit-Remaining", "4", "Retry-After", "")
		hello[5].wants(t, "X-RateLimit-Limit", "5", "X-RateLimit-Remaining", "0", "X-Envoy-Ratelimited", "true")
		world := c.admits(t, 10, http.MethodGet, "/world")
		world[9].wants(t, "X-RateLimit-Limit", "10", "X-RateLimit-Remaining", "0")
		c.one(t, http.MethodGet, "/elsewhere").wants(t, "X-RateLimit-Limit", "")

		world[10].obey(t, 10)
		c.admits(t, 5, http.MethodGet, "/hello")
		c.admits(t, 10, http.MethodGet, "/world")
	})
}

func TestUserToken(t *testing.T) {
	t.Parallel()
	onEachStore(t, "user-token", func(t *testing.T, y *system) {
		const remaining = "X-Bluetape4k-Remaining-Token"
		c := y.from(anna, edgePort)
		for i, a := range c.admits(t, 10, http.MethodGet, "/api/x", "X-User-Token", "anna's") {
			if got, want := a.number(t, remaining), max(9-i, 0); got != want {
				t.Errorf("request %d: %s: %d, want %d", i+1, remaining, got, want)
			}
			a.wants(t, "X-RateLimit-Remaining", "")
		}
		y.from(ben, edgePort).one(t, http.MethodGet, "/api/x", "X-User-Token", "ben's").wants(t, remaining, "9")
		elsewhere := y.from(ben, edgePort).one(t, http.MethodGet, "/api/y", "X-User-Token", "anna's")
		if got, want := elsewhere.status, http.StatusTooManyRequests; got != want {
			t.Errorf("a spent token from another address: %d, want %d", got, want)
		}
		for _, header := range [][]string{nil, {"X-User-Token", ""}, {"X-User-Token", "a", "X-User-Token", "b"}} {
			a := c.one(t, http.MethodGet, "/api/x", header...)
			if a.status != http.StatusUnauthorized {
				t.Errorf("with the headers %q: %d, want %d", header, a.status, http.StatusUnauthorized)
			}
			a.wants(t, remaining, "")
		}
	})
}

func TestPostOnly(t *testing.T) {
	t.Parallel()
	onEachStore(t, "post-only", func(t *testing.T, y *system) {
		c := y.from(anna, edgePort)
		denied := c.admits(t, 5, http.MethodPost, "/remote-api/a?q=1")[5]
		denied.wants(t, "Content-Type", "application/json", "X-RateLimit-Limit", "5")
		var body map[string]string
		if err := json.Unmarshal([]byte(denied.body), &body); err != nil {
			t.Errorf("the body of a denial, %q: %v", denied.body, err)
		}
		if diff := cmp.Diff(map[string]string{"errorMsg": "Too many requests", "blockedUrl": "/remote-api/a"}, body); diff != "" {
			t.Errorf("the body of a denial differs (-want +got):\n%s", diff)
		}
		if wait := denied.number(t, "Retry-After"); wait < 20 || wait > 30 {
			t.Errorf("Retry-After: %d, want 30, or a little less", wait)
		}
		for range 7 {
			c.one(t, http.MethodGet, "/remote-api/a").wants(t, "X-RateLimit-Limit", "")
			c.one(t, http.MethodPost, "/elsewhere").wants(t, "X-RateLimit-Limit", "")
		}
		c.admits(t, 5, http.MethodPost, "/remote-api/b")
		y.from(ben, edgePort).admits(t, 5, http.MethodPost, "/remote-api/a")
		denied.obey(t, 30)
		c.admits(t, 5, http.MethodPost, "/remote-api/a")
	})
}

func TestMeshRLS(t *testing.T) {
	t.Parallel()
	onEachStore(t, "mesh-rls", meshRLS)
}

// The same limits as a file of envoyproxy/ratelimit.
func TestMeshRLSInRatelimitFormat(t *testing.T) {
	t.Parallel()
	s := example("mesh-rls", "memory")
	s.policy = "examples/mesh-rls/ratelimit.yaml"
	y := start(t, s)
	meshRLS(t, y)
	if n := y.upstream.Unasked(); n != 0 {
		t.Errorf("%d requests passed without an answer from Sluice, want 0", n)
	}
}

func meshRLS(t *testing.T, y *system) {
	t.Helper()
	c := y.from(anna, edgePort)
	orders := c.admits(t, 3, http.MethodPost, "/orders")
	orders[0].wants(t, "X-RateLimit-Limit", `3, 10;w=10;name="client", 3;w=10;name="orders"`, "X-RateLimit-Remaining", "2")
	orders[3].wants(t, "X-RateLimit-Limit", `3, 10;w=10;name="client", 3;w=10;name="orders"`,
		"X-RateLimit-Remaining", "0", "X-Envoy-Ratelimited", "true")
	for _, a := range orders {
		if reset := a.number(t, "X-RateLimit-Reset"); reset < 1 || reset > 10 {
			t.Errorf("%d: X-RateLimit-Reset: %d, want 1 to 10", a.status, reset)
		}
	}
	// Three orders were charged to the client as well, and the two that
	// were denied to nobody.
	others := c.admits(t, 7, http.MethodGet, "/orders")
	others[0].wants(t, "X-RateLimit-Limit", `10, 10;w=10;name="client"`, "X-RateLimit-Remaining", "6")
	others[7].wants(t, "X-RateLimit-Remaining", "0")
	y.from(ben, edgePort).admits(t, 10, http.MethodGet, "/elsewhere")
}
