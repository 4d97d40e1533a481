package e2e_test

import (
	"context"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/test/stack"
)

const checkPort = 9003 // of checks over HTTP, in published files

// A byHTTP is a proxy that asks over plain HTTP.
type byHTTP struct {
	config string   // a published file
	args   []string // of the extauthz that it asks
	edit   func(config string) string
}

var proxies = map[string]byHTTP{
	"envoy":         {config: "examples/http-check/envoy.yaml", args: []string{"--http-peer-header", "x-sluice-peer"}},
	"envoy, edge":   {config: "envoy/http-extauthz.yaml", args: []string{"--http-peer-header", "x-sluice-peer"}},
	"envoy, prefix": {"examples/http-check/envoy.yaml", []string{"--http-peer-header", "x-sluice-peer", "--http-path-prefix", "/check"}, prefixed},
	"nginx":         {config: "examples/http-check/nginx.conf", args: []string{"--http-dialect", "nginx"}},
	"caddy":         {config: "examples/http-check/Caddyfile", args: []string{"--http-dialect", "caddy"}},
}

func prefixed(config string) string {
	return strings.Replace(config, "http_service:\n", "http_service:\n                        path_prefix: /check\n", 1)
}

// startHTTP starts p, what it asks, and the service behind it. The policy is
// the published one, with its seconds made hours.
func startHTTP(t *testing.T, p byHTTP) *system {
	t.Helper()
	root := must(t)(stack.Root())
	dir := t.TempDir()
	y := &system{setup: &setup{store: "memory", listen: []int{edgePort}}, ports: map[int]int{}, policyFile: filepath.Join(dir, "policy.yaml")}
	policy := readFile(t, filepath.Join(root, "examples/http-check/policy.yaml"))
	writeFile(t, y.policyFile, strings.ReplaceAll(policy, "/10s", "/1h"))
	config := readFile(t, filepath.Join(root, p.config))
	if p.edit != nil {
		config = p.edit(config)
	}

	ctx, cancel := context.WithTimeout(t.Context(), startTime)
	defer cancel()
	y.startUpstream(t)
	y.startCheck(ctx, t, p.args)
	if strings.HasSuffix(p.config, ".yaml") {
		file := filepath.Join(dir, "published.yaml")
		writeFile(t, file, config)
		y.startEnvoy(ctx, t, need(t, stack.EnvoyPath), file)
		return y
	}
	y.startProxy(ctx, t, filepath.Base(p.config), config)
	return y
}

// startCheck starts an extauthz that answers checks over HTTP.
func (y *system) startCheck(ctx context.Context, t *testing.T, args []string) {
	t.Helper()
	args = append([]string{"--policy", y.policyFile, "--http-addr", "127.0.0.1:0", "--store-deadline", patience.String()}, args...)
	e, err := stack.StartExtauthz(ctx, extauthz(t), 0, args...)
	if err != nil {
		t.Fatal(err)
	}
	endWithTest(t, e.Process, e.Stop)
	y.sluices = append(y.sluices, e)
	port := httpAddr.FindStringSubmatch(must(t)(e.Await(ctx, "ready")))
	if port == nil {
		t.Fatal("extauthz is ready, and does not say where it answers checks over HTTP")
	}
	y.ports[checkPort], _ = strconv.Atoi(port[1])
}

var httpAddr = regexp.MustCompile(`\bhttp\W{1,3}127\.0\.0\.1:(\d+)`)

// startProxy starts nginx or Caddy, by the name of its configuration.
func (y *system) startProxy(ctx context.Context, t *testing.T, file, config string) {
	t.Helper()
	name, run := "nginx", stack.StartNginx
	if file == "Caddyfile" {
		name, run = "caddy", stack.StartCaddy
	}
	path := need(t, func() (string, error) { return stack.ProxyPath(name) })
	port, err := stack.ReservePort(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = port.Release() })
	y.ports[edgePort] = port.Number
	p, err := run(ctx, stack.ProxyOptions{
		Path: path, Config: config, Dir: t.TempDir(), Listen: edgePort, Ports: y.ports, Patience: patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	endWithTest(t, p, p.Stop)
}

// spoofs are what a client may write in the hope that it is taken for a
// proxy's word, or that the proxy's own is taken off.
var spoofs = [][]string{
	{"X-Forwarded-For", "6.6.6.6"},
	{"X-Forwarded-For", "6.6.6.6", "X-Forwarded-For", "127.0.0.1"},
	{"X-Real-IP", "6.6.6.6"},
	{"X-Sluice-Peer", "6.6.6.6"},
	{"Forwarded", "for=6.6.6.6"},
	{"X-Envoy-External-Address", "6.6.6.6"},
	{"X-Forwarded-Uri", "/healthz", "X-Forwarded-Method", "OPTIONS", "X-Forwarded-Host", "evil.example"},
	{"X-Original-Uri", "/healthz", "X-Original-Method", "OPTIONS", "X-Original-Url", "/healthz"},
	{"x_original_uri", "/healthz", "x_forwarded_uri", "/healthz", "x_real_ip", "6.6.6.6"},
	{"X-Envoy-Original-Path", "/healthz", "X-Rewrite-Url", "/healthz", "X-Http-Method-Override", "GET"},
	{"Connection", "X-Forwarded-For, X-Forwarded-Uri, X-Forwarded-Method, X-Real-Ip, X-Original-Uri, X-Original-Method, X-Sluice-Peer"},
}

// Behind each proxy a client has its bucket, whatever it writes.
func TestHTTPCheck(t *testing.T) {
	t.Parallel()
	for name, p := range proxies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := startHTTP(t, p)
			c := y.from(anna, edgePort)
			answers := c.admits(t, 3, http.MethodPost, "/login?x=1")
			answers[0].wants(t, "X-RateLimit-Limit", "3", "X-RateLimit-Remaining", "2", "Retry-After", "")
			answers[3].wants(t, "X-RateLimit-Limit", "3", "X-RateLimit-Remaining", "0")
			if wait := answers[3].number(t, "Retry-After"); wait < 1 || wait > 3600 {
				t.Errorf("Retry-After: %d, want 1 to 3600", wait)
			}
			for _, header := range spoofs {
				want := http.StatusTooManyRequests
				if header[0] == "Connection" && strings.HasPrefix(name, "envoy") {
					want = http.StatusBadRequest // Envoy's own answer
				}
				if got := c.one(t, http.MethodPost, "/login", header...); got.status != want {
					t.Errorf("POST /login with %q: %d, want %d", header, got.status, want)
				}
			}
			for _, path := range []string{"/login?next=/healthz", "//login", "/./login", "/%6cogin", "/x/../login"} {
				if got := c.one(t, http.MethodPost, path); got.status != http.StatusTooManyRequests {
					t.Errorf("POST %s: %d, want %d", path, got.status, http.StatusTooManyRequests)
				}
			}
			c.one(t, http.MethodGet, "/login").wants(t, "X-RateLimit-Limit", "10", "X-RateLimit-Remaining", "6")
			c.one(t, http.MethodHead, "/elsewhere").wants(t, "X-RateLimit-Limit", "10", "X-RateLimit-Remaining", "5")
			y.from(ben, edgePort).admits(t, 3, http.MethodPost, "/login")
		})
	}
}

// A Sluice that is away does not take the service with it.
func TestHTTPCheckWithoutSluice(t *testing.T) {
	t.Parallel()
	for name, p := range proxies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := startHTTP(t, p)
			c := y.from(anna, edgePort)
			c.admits(t, 3, http.MethodPost, "/login")
			if err := y.sluices[0].Stop(stopTime); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				got := c.one(t, http.MethodPost, "/login")
				if got.status != http.StatusOK || !strings.Contains(got.body, "upstream: POST /login") {
					t.Errorf("POST /login without Sluice: %d %q, want the upstream's 200", got.status, got.body)
				}
			}
		})
	}
}

// What the dialect is for: nginx makes 500 of a denial with 429, and shows one
// with 403 as it is unless it is told more.
func TestB084NginxAndDenials(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		proxy byHTTP
		want  int
	}{
		"as published": {byHTTP{config: "examples/http-check/nginx.conf", args: []string{"--http-dialect", "nginx"}}, http.StatusTooManyRequests},
		"by 401":       {byHTTP{config: "examples/http-check/nginx.conf", args: []string{"--http-dialect", "nginx", "--http-deny-status", "401"}}, http.StatusUnauthorized},
		"without error_page": {byHTTP{"examples/http-check/nginx.conf", []string{"--http-dialect", "nginx"}, func(config string) string {
			return strings.Replace(config, "error_page 403 = @denied;", "", 1)
		}}, http.StatusForbidden},
		"with 429": {byHTTP{config: "examples/http-check/nginx.conf", args: []string{"--http-peer-header", "x-real-ip"}}, http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startHTTP(t, tc.proxy).from(anna, edgePort)
			for i := range 11 {
				got, want := c.one(t, http.MethodGet, "/").status, http.StatusOK
				if i == 10 {
					want = tc.want
				}
				if got != want {
					t.Errorf("request %d: %d, want %d", i+1, got, want)
				}
			}
		})
	}
}

// nginx that is not told to say what it asks about is told so, before a client
// says it instead.
func TestHTTPCheckNginxWithoutWords(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"X-Original-Method $request_method", "X-Original-URI $request_uri"} {
		y := startHTTP(t, byHTTP{"examples/http-check/nginx.conf", []string{"--http-dialect", "nginx"}, func(config string) string {
			return strings.Replace(config, "proxy_set_header "+word+";", "", 1)
		}})
		if got := y.from(anna, edgePort).one(t, http.MethodGet, "/").status; got != http.StatusInternalServerError {
			t.Errorf("GET / without %s: %d, want %d", word, got, http.StatusInternalServerError)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := y.sluices[0].Await(ctx, "checks over HTTP were not answered"); err != nil {
			t.Error(err)
		}
	}
}
