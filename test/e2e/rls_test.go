package e2e_test

import (
	"net/http"
	"testing"
)

// Envoy's rate limit filter copies a header into a descriptor byte for byte. A
// byte that is no UTF-8 makes no message that the decoder takes, and an Envoy
// that fails open would let such a client past every limit.
func TestRLSHeaderThatIsNotUTF8(t *testing.T) {
	t.Parallel()
	y := start(t, setup{
		config: "test/e2e/testdata/rls_header_envoy.yaml", policy: "test/e2e/testdata/rls_header_policy.yaml", store: "memory",
	})
	c := y.from(anna, edgePort)
	c.admits(t, 2, http.MethodGet, "/", "X-User", "anna")
	c.admits(t, 2, http.MethodGet, "/", "X-User", "anna\xff\xfe")
	c.admits(t, 2, http.MethodGet, "/", "X-User", "\xe2\x82")
}
