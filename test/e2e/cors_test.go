package e2e_test

import (
	"net/http"
	"strings"
	"testing"
)

// B026: a browser shows a denial to the scripts that the policy names, and the
// headers of what is allowed.
func TestScriptsMayRead(t *testing.T) {
	t.Parallel()
	y := start(t, setup{config: "envoy/edge-extauthz.yaml", policy: "test/e2e/testdata/cors.yaml", store: "memory"})
	c := y.from(anna, edgePort)
	const exposed = "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit-Policy, RateLimit, "
	ok := c.one(t, http.MethodGet, "/hello", "Origin", "https://app.example")
	ok.wants(t, "Access-Control-Expose-Headers", exposed+"X-RateLimit-Rule", "Access-Control-Allow-Origin", "",
		"RateLimit-Policy", `"hello";q=1;w=3600`, "RateLimit", `"hello";r=0;t=3600`, "X-RateLimit-Rule", "hello")
	denied := c.one(t, http.MethodGet, "/hello", "Origin", "https://app.example")
	denied.wants(t, "Access-Control-Allow-Origin", "https://app.example", "Access-Control-Allow-Credentials", "true", "Vary", "Origin",
		"Access-Control-Expose-Headers", exposed+"Retry-After, x-envoy-ratelimited, X-RateLimit-Rule",
		"Content-Type", "application/problem+json")
	if denied.status != http.StatusTooManyRequests || !strings.Contains(denied.body, `#quota-exceeded"`) || !strings.Contains(denied.body, `["hello"]`) {
		t.Errorf("%d %s, want 429 and the problem of hello's quota", denied.status, denied.body)
	}
	other := c.one(t, http.MethodGet, "/hello", "Origin", "https://evil.example")
	other.wants(t, "Access-Control-Allow-Origin", "", "Vary", "Origin")
}
