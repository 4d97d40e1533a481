package httpcheck_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/httpcheck"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/limiter/doortest"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

const answers = `
domain: edge
identities: {user: {header: x-user-id, believe: always}}
exempt: {paths: [/healthz]}
rules:
  - name: all
    match: {path: /api/*}
    per: [ip]
    limits: [{rate: 1/1h}]
    deny: {content_type: application/json, body: '{"blocked":"{path}","by":"{rule}"}'}
  - {name: users, match: {path: /users}, per: [user], missing: 401, limits: [{rate: 1/1h}]}
  - {name: named, match: {path: /named}, per: [user], limits: [{rate: 1/1h}]}
  - {name: busy, match: {path: /busy}, per: [ip], limits: [{rate: 1/1h}], deny: {status: 503}}
`

// An answered is what of an answer a proxy sees.
type answered struct {
	Status int
	Header map[string]string
	Body   string
}

func read(t *testing.T, r *http.Response) answered {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answered{r.StatusCode, map[string]string{}, string(body)}
	for name, lines := range r.Header {
		a.Header[name] = strings.Join(lines, "|")
	}
	return a
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	empty := map[string]string{"Content-Length": "0"}
	refused := map[string]string{"Content-Length": "0", "X-Envoy-Ratelimited": "true"}
	spent := func(more ...string) map[string]string {
		hs := map[string]string{
			"Content-Length": "0", "Retry-After": "3600", "X-Envoy-Ratelimited": "true",
			"X-Ratelimit-Limit": "1", "X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": "3600",
		}
		for i := 0; i+1 < len(more); i += 2 {
			hs[more[i]] = more[i+1]
		}
		return hs
	}
	const body = `{"blocked":"/api/x","by":"all"}`
	typed := []string{"Content-Length", "31", "Content-Type", "application/json"}
	for name, tc := range map[string]struct {
		options httpcheck.Options
		request int // which one is looked at
		method  string
		target  string
		lines   []string
		want    answered
	}{
		"allowed": {httpcheck.Options{}, 1, "GET", "/api/x", nil, answered{200, map[string]string{
			"Content-Length": "0", "X-Ratelimit-Limit": "1", "X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": "3600",
		}, ""}},
		"no rule":          {httpcheck.Options{}, 2, "GET", "/elsewhere", nil, answered{200, empty, ""}},
		"exempt":           {httpcheck.Options{}, 2, "GET", "/healthz", nil, answered{200, empty, ""}},
		"denied":           {httpcheck.Options{}, 2, "GET", "/api/x?q", nil, answered{429, spent(typed...), body}},
		"denied, gRPC":     {httpcheck.Options{}, 2, "POST", "/api/x", []string{"Content-Type: application/grpc+proto"}, answered{429, spent(append(typed, "Grpc-Status", "8")...), body}},
		"refused with 401": {httpcheck.Options{}, 1, "GET", "/users", nil, answered{401, refused, ""}},
		"refused with 400": {httpcheck.Options{}, 1, "GET", "/named", nil, answered{400, refused, ""}},
		"503, which Envoy takes for a failure": {
			httpcheck.Options{}, 2, "GET", "/busy", nil, answered{429, spent("X-Sluice-Status", "503"), ""},
		},
		"503 of caddy": {
			httpcheck.Options{Dialect: httpcheck.Caddy}, 2, "GET", "/", []string{"X-Forwarded-Method: GET", "X-Forwarded-Uri: /busy"}, answered{503, spent(), ""},
		},
		"nginx": {
			httpcheck.Options{Dialect: httpcheck.Nginx},
			2, "GET", "/",
			[]string{"X-Original-Method: GET", "X-Original-URI: /api/x"},
			answered{403, spent(append(typed, "X-Sluice-Status", "429")...), body},
		},
		"nginx, refused with 401": {
			httpcheck.Options{Dialect: httpcheck.Nginx}, 1, "GET", "/", []string{"X-Original-Method: GET", "X-Original-URI: /users"}, answered{401, refused, ""},
		},
		"nginx, refused with 400": {
			httpcheck.Options{Dialect: httpcheck.Nginx},
			1, "GET", "/",
			[]string{"X-Original-Method: GET", "X-Original-URI: /named"},
			answered{403, map[string]string{"Content-Length": "0", "X-Envoy-Ratelimited": "true", "X-Sluice-Status": "400"}, ""},
		},
		"nginx, by 401": {
			httpcheck.Options{Dialect: httpcheck.Nginx, DenyStatus: 401},
			2, "GET", "/",
			[]string{"X-Original-Method: GET", "X-Original-URI: /busy"},
			answered{401, spent("X-Sluice-Status", "503"), ""},
		},
		"a status of one's own": {
			httpcheck.Options{DenyStatus: 403}, 2, "GET", "/busy", nil, answered{403, spent("X-Sluice-Status", "503"), ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := handler(t, answers, tc.options)
			var got answered
			for range tc.request {
				got = read(t, check(h, tc.method, tc.target, tc.lines...))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("request %d: ServeHTTP(%s %s) (-want +got):\n%s", tc.request, tc.method, tc.target, diff)
			}
		})
	}
}

func TestStoreDown(t *testing.T) {
	t.Parallel()
	broken := doortest.Broken{Err: errors.New("down")}
	l := doortest.Limiter(t, limiter.Options{Store: broken})
	for onError, want := range map[string]int{"allow": 200, "deny": 429, "local": 200} {
		h := handler(t, login+"on_error: "+onError+"\n", httpcheck.Options{Limiter: l})
		got := check(h, "POST", "/login")
		if own := got.Header.Get("X-Sluice-Status"); got.StatusCode != want || (own == "503") != (want == 429) {
			t.Errorf("on_error %s: ServeHTTP() = %d for %q, want %d for 503 if denied", onError, got.StatusCode, own, want)
		}
	}
}

// Who hears this answer is gone; a proxy that is not must not take it for one.
func TestCanceled(t *testing.T) {
	t.Parallel()
	h := handler(t, login, httpcheck.Options{Limiter: doortest.Limiter(t, limiter.Options{Store: doortest.Broken{Err: context.Canceled}})})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequest("POST", "/login", nil).WithContext(ctx)
	r.RemoteAddr = proxy
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != 503 {
		t.Errorf("ServeHTTP(canceled) = %d, want 503", w.Code)
	}
}

func TestNoPolicy(t *testing.T) {
	t.Parallel()
	unknown := 0
	l := doortest.Limiter(t, limiter.Options{Observe: func(_ context.Context, d limiter.Decision) {
		if d.Reason == limiter.UnknownDomain {
			unknown++
		}
	}})
	h, err := httpcheck.New(httpcheck.Options{Policies: func() *policy.Set { return nil }, Limiter: l})
	if err != nil {
		t.Fatal(err)
	}
	if got := check(h, "GET", "/").StatusCode; got != 200 || unknown != 1 {
		t.Errorf("ServeHTTP() without a policy = %d, observed %d, want 200, 1", got, unknown)
	}
}

// The log has a line a minute, and nothing that a client wrote.
func TestMisfitsAreLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	now := time.Unix(1_000_000_000, 0)
	h := handler(t, login, httpcheck.Options{
		Dialect: httpcheck.Nginx, Now: func() time.Time { return now }, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	for i, step := range []struct {
		after time.Duration
		want  string // in the lines that are new; "" for none
	}{
		{0, "checks=1"}, {time.Second, ""}, {time.Minute - time.Second, "checks=2"}, {0, ""},
	} {
		now = now.Add(step.after)
		log.Reset()
		got := check(h, "GET", "/secret", "X-Secret: secret")
		if line := log.String(); got.StatusCode != 400 || !strings.Contains(line, step.want) || (line == "") != (step.want == "") || strings.Contains(line, "secret") {
			t.Errorf("step %d: ServeHTTP() = %d, logs %q, want 400, %q", i, got.StatusCode, line, step.want)
		}
	}
}
