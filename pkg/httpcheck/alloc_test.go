//go:build !race

// The race detector makes sync.Pool forget at random, so nothing is counted
// under it.

package httpcheck_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/sluice-mesh/sluice/pkg/httpcheck"
)

// A silent is a ResponseWriter that keeps nothing.
type silent struct{ header http.Header }

func (s silent) Header() http.Header         { return s.header }
func (s silent) Write(b []byte) (int, error) { return len(b), nil }
func (s silent) WriteHeader(int)             {}

// Most of what a check allocates is its headers, in and out; their number must
// not show in it.
func TestServeHTTPAllocates(t *testing.T) {
	h := handler(t, login, httpcheck.Options{Dialect: httpcheck.Traefik})
	r := httptest.NewRequest("GET", "/check", nil)
	r.RemoteAddr = proxy
	r.Header = http.Header{
		"X-Forwarded-Method": {"POST"}, "X-Forwarded-Uri": {"/login"}, "X-Forwarded-For": {"203.0.113.7"}, "X-User-Id": {"anna"},
	}
	w := silent{http.Header{}}
	const most = 32
	if got := testing.AllocsPerRun(1000, func() { h.ServeHTTP(w, r) }); got > most {
		t.Errorf("ServeHTTP() allocates %v times, want at most %d", got, most)
	}
}
