package admin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/internal/admin"
)

func options(r admin.Readiness) admin.Options {
	return admin.Options{
		Pprof: true,
		Ready: func(context.Context) admin.Readiness { return r },
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "a_metric 1\n")
		}),
	}
}

func TestHandler(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		method, path string
		status       int
		body         string // is in it
	}{
		{"GET", "/", 200, "/readyz"},
		{"GET", "/healthz", 200, "ok"},
		{"HEAD", "/healthz", 200, ""},
		{"POST", "/healthz", 405, ""},
		{"GET", "/metrics", 200, "a_metric 1"},
		{"GET", "/debug/pprof/", 200, "goroutine"},
		{"GET", "/debug/pprof/goroutine?debug=1", 200, "goroutine profile"},
		{"GET", "/debug/pprof/cmdline", 404, ""}, // it may hold a password
		{"GET", "/nothing", 404, ""},
	} {
		w := httptest.NewRecorder()
		admin.Handler(options(admin.Readiness{})).ServeHTTP(w, httptest.NewRequest(tt.method, "http://localhost"+tt.path, nil))
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.body) {
			t.Errorf("%s %s = %d %q, want %d with %q", tt.method, tt.path, w.Code, w.Body, tt.status, tt.body)
		}
	}
}

func TestReady(t *testing.T) {
	t.Parallel()
	checks := []admin.Check{{Name: "policy", OK: true, Detail: "<2> rules"}, {Name: "store", Detail: "timeout"}}
	for ready, status := range map[bool]int{true: 200, false: 503} {
		want := admin.Readiness{Ready: ready, Checks: checks}
		w := httptest.NewRecorder()
		admin.Handler(options(want)).ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/readyz", nil))
		var got admin.Readiness
		err := json.Unmarshal(w.Body.Bytes(), &got)
		if diff := cmp.Diff(want, got); err != nil || w.Code != status || diff != "" {
			t.Errorf("GET /readyz = %d, error %v, want %d (-want +got):\n%s", w.Code, err, status, diff)
		}
	}
}

func Example() {
	h := admin.Handler(admin.Options{
		Metrics: http.NotFoundHandler(),
		Ready:   func(context.Context) admin.Readiness { return admin.Readiness{Ready: true} },
	})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/readyz", nil))
	fmt.Println(w.Code, w.Body)
	// Output: 200 {"ready":true,"checks":null}
}
