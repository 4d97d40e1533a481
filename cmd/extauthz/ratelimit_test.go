package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	rlcommonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/sluice-mesh/sluice/test/servers"
)

// A dropIn is extauthz ratelimit, run within the test.
type dropIn struct {
	*process
	debug, prometheus string
}

// startRatelimit runs it with the variables environ on ports of its own.
func startRatelimit(t *testing.T, environ ...string) *dropIn {
	t.Helper()
	d := &dropIn{process: &process{log: newJournal(), code: make(chan int, 1)}}
	ctx, cancel := context.WithCancel(context.Background())
	d.tell = cancel
	environ = append([]string{
		"HOST=127.0.0.1", "GRPC_HOST=127.0.0.1", "DEBUG_HOST=127.0.0.1", "PORT=0", "GRPC_PORT=0", "DEBUG_PORT=0", "USE_STATSD=false",
		"LOG_LEVEL=INFO", "LOG_FORMAT=json",
	}, environ...)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.code <- run(ctx, commandLine([]string{"/bin/ratelimit"}), environ, io.Discard, d.log)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	var ready struct{ GRPC, HTTP, Debug, Prometheus string }
	if err := json.Unmarshal([]byte(d.log.await(t, `"msg":"ready"`, 1)), &ready); err != nil {
		t.Fatal(err)
	}
	d.grpc, d.http, d.debug, d.prometheus = ready.GRPC, ready.HTTP, ready.Debug, ready.Prometheus
	d.conn = dial(t, d.grpc)
	return d
}

// fetch returns the status and the body of a GET, or a POST of body.
func fetch(t *testing.T, url, body string) (int, string) {
	t.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// ask asks for a descriptor of one entry.
func (d *dropIn) ask(t *testing.T, domain, key, value string) (*rlsv3.RateLimitResponse, error) {
	t.Helper()
	return rlsv3.NewRateLimitServiceClient(d.conn).ShouldRateLimit(t.Context(), &rlsv3.RateLimitRequest{
		Domain:      domain,
		Descriptors: []*rlcommonv3.RateLimitDescriptor{{Entries: []*rlcommonv3.RateLimitDescriptor_Entry{{Key: key, Value: value}}}},
	})
}

// limitOf waits until the limit of key a in domain is n; 0 is for none.
func (d *dropIn) limitOf(t *testing.T, domain string, n uint32) {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		resp, err := d.ask(t, domain, "a", "x")
		if err == nil && resp.GetStatuses()[0].GetCurrentLimit().GetRequestsPerUnit() == n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the limit in %s is %v, %v, want %d", domain, resp, err, n)
		}
		<-time.After(10 * time.Millisecond)
	}
}

func limitFile(domain string, n string) string {
	return "domain: " + domain + "\ndescriptors: [{key: a, rate_limit: {unit: year, requests_per_unit: " + n + "}}]\n"
}

// runtime makes a folder of files as envoyproxy/ratelimit looks for them.
func runtimeFolder(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRatelimitPorts(t *testing.T) {
	t.Parallel()
	dir := runtimeFolder(t, t.TempDir(), map[string]string{"config/mesh.yaml": limitFile("mesh", "2")})
	d := startRatelimit(t, "RUNTIME_ROOT="+dir, "USE_PROMETHEUS=true", "PROMETHEUS_ADDR=127.0.0.1:0", "LIMIT_RESPONSE_HEADERS_ENABLED=true", "REDIS_POOLSIZE=3")
	if code, body := fetch(t, d.http+"/healthcheck", ""); code != 200 || body != "OK" {
		t.Errorf("GET /healthcheck = %d %q, want 200 OK", code, body)
	}
	const request = `{"domain":"mesh","descriptors":[{"entries":[{"key":"a","value":"x"}]}]}`
	for _, test := range []struct {
		body string
		code int
		part string
	}{
		{request, 200, `"OK"`},
		{request, 200, `RateLimit-Remaining`},
		{request, 429, `"OVER_LIMIT"`},
		{"{", 400, "no RateLimitRequest"},
		{`{"domain":""}`, 400, "domain must not be empty"},
		{"", 405, "want POST"},
	} {
		if code, body := fetch(t, d.http+"/json", test.body); code != test.code || !strings.Contains(body, test.part) {
			t.Errorf("POST /json %s = %d %s, want %d with %s", test.body, code, body, test.code, test.part)
		}
	}
	for url, part := range map[string]string{
		d.debug + "/rlconfig":     "mesh.a: unit=YEAR requests_per_unit=2, shadow_mode: false, quota_mode: false\n",
		d.debug + "/stats":        "ratelimit.service.rate_limit.mesh.a.over_limit: 1\n",
		d.debug + "/":             "/rlconfig",
		d.debug + "/debug/pprof/": "goroutine",
		d.debug + "/metrics":      "sluice_decisions_total",
		d.prometheus + "/metrics": `ratelimit_service_rate_limit_over_limit{domain="mesh",key1="a"} 1`,
	} {
		if code, body := fetch(t, url, ""); code != 200 || !strings.Contains(body, part) {
			t.Errorf("GET %s = %d %.300s, want 200 with %s", url, code, body, part)
		}
	}
	if found := d.log.lines("REDIS_POOLSIZE"); len(found) != 1 || !strings.Contains(found[0], `"level":"WARN"`) {
		t.Errorf("the log says of REDIS_POOLSIZE %q, want a warning", found)
	}
	h, err := healthv1.NewHealthClient(d.conn).Check(t.Context(), &healthv1.HealthCheckRequest{Service: "ratelimit"})
	if err != nil || h.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("Check(ratelimit) = %v, %v, want SERVING", h, err)
	}
}

// A link that is swapped, a file that is written, one with a fault.
func TestRatelimitFollowsFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	runtimeFolder(t, filepath.Join(dir, "v1"), map[string]string{"sub/app/one": limitFile("one", "1"), "sub/app/deep/two": limitFile("two", "2")})
	runtimeFolder(t, filepath.Join(dir, "v2"), map[string]string{"sub/app/one": limitFile("one", "3"), "sub/app/deep/two": limitFile("two", "-1")})
	current := filepath.Join(dir, "current")
	link(t, "v1", current)
	d := startRatelimit(t, "RUNTIME_ROOT="+current, "RUNTIME_SUBDIRECTORY=sub", "RUNTIME_APPDIRECTORY=app")
	d.limitOf(t, "one", 1)
	d.limitOf(t, "two", 2)
	link(t, "v2", current)
	d.limitOf(t, "one", 3)
	d.log.await(t, "its domain stays as it was", 1)
	d.limitOf(t, "two", 2)
	runtimeFolder(t, filepath.Join(dir, "v2"), map[string]string{"sub/app/deep/two": limitFile("two", "4")})
	d.limitOf(t, "two", 4)
}

// link makes name lead to target in one step.
func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name+".new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}

// Until there is a configuration nothing is known of any limit.
func TestRatelimitWithoutConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := startRatelimit(t, "RUNTIME_ROOT="+dir, "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED=true")
	if _, err := d.ask(t, "one", "a", "x"); status.Code(err) != codes.Unavailable {
		t.Errorf("ShouldRateLimit() = %v, want Unavailable", err)
	}
	if code, _ := fetch(t, d.http+"/healthcheck", ""); code != 500 {
		t.Errorf("GET /healthcheck = %d, want 500", code)
	}
	runtimeFolder(t, dir, map[string]string{"config/one.yaml": limitFile("one", "1")})
	d.limitOf(t, "one", 1)
	if code, _ := fetch(t, d.http+"/healthcheck", ""); code != 200 {
		t.Errorf("GET /healthcheck = %d, want 200", code)
	}
}

func TestRatelimitRedis(t *testing.T) {
	t.Parallel()
	redis := servers.Start(t, servers.Redis, servers.Options{Password: "s3cret"})
	dir := runtimeFolder(t, t.TempDir(), map[string]string{"config/one": limitFile("one", "1")})
	environ := []string{
		"RUNTIME_ROOT=" + dir, "REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + redis.Addr, "REDIS_AUTH=s3cret", "REDIS_HEALTH_CHECK_ACTIVE_CONNECTION=true",
		"REDIS_TIMEOUT=10s", "CACHE_KEY_PREFIX=mine:",
	}
	a, b := startRatelimit(t, environ...), startRatelimit(t, environ...)
	for i, d := range []*dropIn{a, b} {
		resp, err := d.ask(t, "one", "a", "x")
		if over := resp.GetOverallCode() == rlsv3.RateLimitResponse_OVER_LIMIT; err != nil || over != (i == 1) {
			t.Errorf("replica %d: ShouldRateLimit() = %v, %v, want over %v", i, resp, err, i == 1)
		}
	}
	if text, _ := a.log.read(); strings.Contains(text, "s3cret") {
		t.Error("the log shows the password of Redis")
	}
	if _, err := a.ask(t, "nobody's", "a", "x"); err != nil {
		t.Errorf("ShouldRateLimit() of an unknown domain = %v, want an answer", err)
	}
	for _, want := range []string{
		"ratelimit.service.rate_limit.one.a.over_limit_with_local_cache: [1-9]",
		"ratelimit.service.rate_limit.nobody's.domain_not_found: 1\n",
		"ratelimit.redis_pool.cx_active: [1-9]", "ratelimit.redis_pool.cx_total: [1-9]",
	} {
		eventually(t, want, func() bool {
			if _, err := a.ask(t, "one", "a", "x"); err != nil {
				t.Fatal(err)
			}
			_, body := fetch(t, a.debug+"/stats", "")
			return regexp.MustCompile(want).MatchString(body)
		})
	}
	redis.Kill()
	if code, _ := fetch(t, a.http+"/healthcheck", ""); code != 500 {
		t.Errorf("GET /healthcheck without Redis = %d, want 500", code)
	}
}

// Where a port cannot be had, or a folder, the variable that names it is said.
func TestRatelimitNamesVariables(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"GRPC_PORT", "PORT", "DEBUG_PORT"} {
		log := newJournal()
		environ := []string{"HOST=127.0.0.1", "GRPC_HOST=127.0.0.1", "DEBUG_HOST=127.0.0.1", "USE_STATSD=false", "RUNTIME_ROOT=" + t.TempDir()}
		for _, other := range []string{"GRPC_PORT", "PORT", "DEBUG_PORT"} {
			environ = append(environ, other+"="+map[bool]string{true: port, false: "0"}[other == name])
		}
		code := run(t.Context(), []string{"ratelimit"}, environ, io.Discard, log)
		text, _ := log.read()
		if want := "extauthz: " + name + " 127.0.0.1:" + port + ": "; code != exitFailed || !strings.Contains(text, want) {
			t.Errorf("ratelimit with %s=%s, which is taken = %d, %s, want %d and %q", name, port, code, text, exitFailed, want)
		}
	}
	d := startRatelimit(t, "RUNTIME_ROOT=/nowhere", "RUNTIME_APPDIRECTORY=limits")
	const want = "it is RUNTIME_ROOT (/nowhere), RUNTIME_SUBDIRECTORY () and RUNTIME_APPDIRECTORY (limits), joined"
	d.log.await(t, want, 1)
}

// No page that a browser shows is a way in.
func TestRatelimitAgainstPages(t *testing.T) {
	t.Parallel()
	dir := runtimeFolder(t, t.TempDir(), map[string]string{"config/mesh.yaml": limitFile("mesh", "2")})
	d := startRatelimit(t, "RUNTIME_ROOT="+dir, "SLUICE_ADMIN_HOSTS=debug.mesh, other")
	for _, test := range []struct {
		method, at, path, host, origin string
		code                           int
	}{
		{"GET", d.debug, "/stats", "127.0.0.1", "", 200},
		{"GET", d.debug, "/stats", "localhost:6070", "", 200},
		{"GET", d.debug, "/stats", "other:6070", "", 200},
		{"GET", d.debug, "/rlconfig", "debug.mesh", "http://debug.mesh", 200},
		{"GET", d.debug, "/rlconfig", "debug.mesh", "http://evil.example", 403},
		{"GET", d.debug, "/rlconfig", "evil.example", "", 421},
		{"GET", d.debug, "/stats", "evil.example", "", 421},
		{"GET", d.debug, "/", "evil.example", "", 421},
		{"GET", d.debug, "/debug/pprof/", "evil.example", "", 421},
		{"GET", d.http, "/healthcheck", "ratelimit", "", 200},
		{"POST", d.http, "/json", "ratelimit", "", 400},
		{"POST", d.http, "/json", "ratelimit", "http://ratelimit", 400},
		{"POST", d.http, "/json", "ratelimit", "http://evil.example", 403},
	} {
		req, err := http.NewRequestWithContext(t.Context(), test.method, "http://"+test.at+test.path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = test.host
		if test.origin != "" {
			req.Header.Set("Origin", test.origin)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != test.code {
			t.Errorf("%s %s of %q by a page of %q = %d, want %d", test.method, test.path, test.host, test.origin, resp.StatusCode, test.code)
		}
	}
}

func TestRatelimitRefuses(t *testing.T) {
	t.Parallel()
	log := newJournal()
	code := run(t.Context(), []string{"ratelimit"}, []string{"PORT=http", "BACKEND_TYPE=memcache"}, io.Discard, log)
	text, _ := log.read()
	if code != exitUsage || !strings.Contains(text, `PORT: found "http"`) || !strings.Contains(text, "no memcache") {
		t.Errorf("ratelimit with PORT=http BACKEND_TYPE=memcache = %d, %s, want %d and both faults", code, text, exitUsage)
	}
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"extauthz serve -p x": "serve -p x", "/bin/ratelimit": "ratelimit", "ratelimit --help": "ratelimit --help", "/opt/ratelimit/extauthz version": "version",
	} {
		if got := commandLine(strings.Fields(args)); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("commandLine(%s) = %q, want %q", args, got, want)
		}
	}
}
