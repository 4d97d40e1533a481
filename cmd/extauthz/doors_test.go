package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/sluice-mesh/sluice/test/authority"
	"github.com/sluice-mesh/sluice/test/servers"
)

// tlsArgs are the settings of TLS for one port.
func tlsArgs(port string, shown authority.Pair, clients *authority.Authority, san string) []string {
	return []string{
		"--" + port + "-tls-cert", shown.CertFile, "--" + port + "-tls-key", shown.KeyFile,
		"--" + port + "-tls-client-ca", clients.File, "--" + port + "-tls-client-san", san,
	}
}

// All three ports speak TLS with who may, and tell by metrics of who may not.
func TestServeTLS(t *testing.T) {
	t.Parallel()
	ours := authority.New(t)
	shown := ours.Issue(t, authority.Leaf{})
	args := []string{"--policy", policyFile(t, limited(2)), "--http-addr", "127.0.0.1:0", "--http-dialect", "traefik"}
	for _, port := range []string{"grpc", "http", "admin"} {
		args = append(args, tlsArgs(port, shown, ours, "spiffe://td/"+port)...)
	}
	p := start(t, args...)
	web := func(port string) *http.Client {
		return &http.Client{Transport: &http.Transport{TLSClientConfig: ours.Client(ours.Issue(t, authority.Leaf{URIs: []string{"spiffe://td/" + port}}))}}
	}
	for port, url := range map[string]string{"http": "https://" + p.http + "/", "admin": "https://" + p.admin + "/readyz"} {
		get := func(c *http.Client) (int, string) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			r.Header = http.Header{"X-Forwarded-Method": {"GET"}, "X-Forwarded-Uri": {"/"}, "X-Forwarded-For": {"203.0.113.7"}}
			resp, err := c.Do(r)
			if err != nil {
				return 0, err.Error()
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			return resp.StatusCode, string(body)
		}
		if got, body := get(web(port)); got != 200 {
			t.Errorf("%s port: %d %s for its client, want 200", port, got, body)
		}
		if got, body := get(web("stranger")); got != 0 {
			t.Errorf("%s port: %d %s for a stranger, want an error", port, got, body)
		}
	}
	dialTLS := func(who string) *grpc.ClientConn {
		creds := credentials.NewTLS(ours.Client(ours.Issue(t, authority.Leaf{URIs: []string{"spiffe://td/" + who}})))
		conn, err := grpc.NewClient(p.grpc, grpc.WithTransportCredentials(creds))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	if got := check(t, dialTLS("grpc"), "/api/x"); got != 200 {
		t.Errorf("Check = %d, want 200", got)
	}
	if got, err := tryCheck(t.Context(), dialTLS("http"), "/api/x"); err == nil {
		t.Errorf("Check = %d for the client of another port, want an error", got)
	}
	p.scrape = web("admin")
	for name, want := range map[string]string{
		`sluice_tls_handshake_failures_total{port="grpc",reason="name"}`:  "",
		`sluice_tls_handshake_failures_total{port="http",reason="name"}`:  "",
		`sluice_tls_handshake_failures_total{port="admin",reason="name"}`: "",
		`sluice_tls_last_reload_successful{port="grpc"}`:                  "1",
	} {
		if got := p.metric(t, name); got == "" || want != "" && got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if _, body := p.get(t, "/readyz"); !strings.Contains(body, `{"name":"grpc-tls","ok":true,"detail":"the certificate expires `) {
		t.Errorf("GET /readyz = %s, want when the certificate expires", body)
	}
}

// A renewed certificate that cannot be used is told of, and changes nothing.
func TestServeBadCertificate(t *testing.T) {
	t.Parallel()
	ours := authority.New(t)
	shown := ours.Issue(t, authority.Leaf{})
	p := start(t, append(tlsArgs("grpc", shown, ours, "spiffe://td/x"), "--policy", policyFile(t, limited(2)))...)
	writeFile(t, shown.CertFile, "no certificate")
	p.log.await(t, "certificate files have faults, the last good ones stay in use", 1)
	if got := p.metric(t, `sluice_tls_last_reload_successful{port="grpc"}`); got != "0" {
		t.Errorf("sluice_tls_last_reload_successful = %q, want 0", got)
	}
	if code, body := p.get(t, "/readyz"); code != 200 || !strings.Contains(body, "setting grpc-tls-cert: found no certificate") {
		t.Errorf("GET /readyz = %d %s, want 200 with the fault", code, body)
	}
	writeFile(t, shown.CertFile, string(shown.CertPEM))
	p.log.await(t, `"msg":"certificates loaded"`, 1)
	if got := p.metric(t, `sluice_tls_last_reload_successful{port="grpc"}`); got != "1" {
		t.Errorf("sluice_tls_last_reload_successful = %q, want 1", got)
	}
}

func TestServeWithoutCertificate(t *testing.T) {
	t.Parallel()
	code, _, stderr := ran([]string{"serve", "--policy", policyFile(t, limited(2)), "--grpc-tls-cert", "/nowhere/c", "--grpc-tls-key", "/nowhere/k"}, nil)
	for _, want := range []string{"setting grpc-tls-cert: found nothing (no such file or directory) in /nowhere/c", "setting grpc-tls-key"} {
		if code != exitFailed || !strings.Contains(stderr, want) {
			t.Errorf("run(serve) = %d, %s, want 1 with %q", code, stderr, want)
		}
	}
}

// Health is each service's own: who watches one that all rules of deny without
// the store is told when the store goes, and when it is back. Liveness and the
// server go on.
func TestHealthByService(t *testing.T) {
	t.Parallel()
	r := servers.Start(t, servers.Redis, servers.Options{})
	p := start(t, "--redis-url", r.URL(), "--store-deadline", "5s", "--policy", policyFile(t, `
domain: edge
rules:
  - {name: api, match: {path: /api/*}, per: [ip], limits: [{rate: 5/1h}], on_error: deny}
  - {name: seen, match: {path: /*}, per: [ip], limits: [{rate: 5/1h}], shadow: true}
  - {name: login, descriptor: [generic_key=login], limits: [{rate: 5/1h}]}
`))
	const authz, rls = "envoy.service.auth.v3.Authorization", "envoy.service.ratelimit.v3.RateLimitService"
	watch, err := healthv1.NewHealthClient(p.conn).Watch(t.Context(), &healthv1.HealthCheckRequest{Service: authz})
	if err != nil {
		t.Fatal(err)
	}
	told := func(want healthv1.HealthCheckResponse_ServingStatus) {
		t.Helper()
		for { // a busy machine may look away from Redis for a moment
			got, err := watch.Recv()
			if err != nil {
				t.Fatalf("Watch(%s) = %v, want %v", authz, err, want)
			}
			if got.GetStatus() == want {
				return
			}
		}
	}
	told(healthv1.HealthCheckResponse_SERVING)
	r.Kill()
	told(healthv1.HealthCheckResponse_NOT_SERVING)
	for _, name := range []string{"", "liveness", "readiness", rls} {
		got, err := healthv1.NewHealthClient(p.conn).Check(t.Context(), &healthv1.HealthCheckRequest{Service: name})
		if err != nil || got.GetStatus() != healthv1.HealthCheckResponse_SERVING {
			t.Errorf("Check(%q) = %v, %v without Redis, want SERVING", name, got, err)
		}
	}
	if code, body := p.get(t, "/readyz"); code != 200 || !strings.Contains(body, `"name":"store","ok":false`) {
		t.Errorf("GET /readyz = %d %s, want 200 and that the store is away: not all rules deny", code, body)
	}
	r.Restart(t)
	told(healthv1.HealthCheckResponse_SERVING)
}

// With a token set a running server explains to who has it.
func TestExplainWithToken(t *testing.T) {
	t.Parallel()
	const token = "0123456789-a-token"
	file := filepath.Join(t.TempDir(), "token")
	writeFile(t, file, token+"\n")
	p := start(t, "--policy", policyFile(t, limited(2)), "--admin-token-file", file)
	args := []string{"explain", "--server", p.admin, "/api/x", "--peer", "203.0.113.7"}
	if code, _, stderr := ran(args, nil); code == exitOK || !strings.Contains(stderr, "401: ") || !strings.Contains(stderr, "admin-token-file") {
		t.Errorf("run(explain) = %d, %s without a token, want 401 and what to do", code, stderr)
	}
	if code, stdout, stderr := ran(append(args, "--admin-token-file", file), nil); code != exitOK || !strings.Contains(stdout, "api") {
		t.Errorf("run(explain) = %d, %q, %q with the token, want the rule", code, stdout, stderr)
	}
	if code, stdout, stderr := ran(args, []string{"SLUICE_ADMIN_TOKEN_FILE=" + file}); code != exitOK || !strings.Contains(stdout, "api") {
		t.Errorf("run(explain) = %d, %q, %q with the token by its variable, want the rule", code, stdout, stderr)
	}
	if code, _ := p.get(t, "/debug/pprof/"); code != http.StatusUnauthorized {
		t.Errorf("GET /debug/pprof/ = %d, want %d", code, http.StatusUnauthorized)
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		if code, _ := p.get(t, path); code != 200 {
			t.Errorf("GET %s = %d, want 200", path, code)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if code, _ := p.get(t, "/debug/pprof/"); code != http.StatusUnauthorized {
		t.Errorf("GET /debug/pprof/ = %d without the file, want %d", code, http.StatusUnauthorized)
	}
	if lines := p.log.lines(token); len(lines) > 0 {
		t.Errorf("the log has %s, want no token in it", lines)
	}
}
