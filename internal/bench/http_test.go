package bench_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/internal/bench"
)

func TestHTTP(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil || r.Header.Get("X-N") == "" || r.Method != "PUT" || r.Host != "h0" {
			status = 501
		}
		w.WriteHeader(status)
	}))
	defer s.Close()
	for status, want := range map[string]bench.Answer{"200": bench.OK, "204": bench.OK, "429": bench.Denied, "403": bench.Denied, "503": "503 Service Unavailable"} {
		request := bench.HTTP{Method: "PUT", Path: "/" + status, Host: "h{key}", Headers: []bench.Entry{{"x-n", "{n}"}}}
		got := ran(t, bench.Target{Addr: s.Listener.Addr().String(), Connections: 2}, request, bench.Options{Callers: 2, Requests: 10, Timeout: time.Minute})
		if diff := cmp.Diff(map[bench.Answer]int64{want: 10}, got.Answers); diff != "" {
			t.Errorf("the answers to %s (-want +got):\n%s", status, diff)
		}
		if (got.Unanswered > 0) != (status == "503") {
			t.Errorf("the status %s is %d times no answer, want that of 503 alone", status, got.Unanswered)
		}
	}
}
