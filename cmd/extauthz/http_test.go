package main

import (
	"net"
	"net/http"
	"testing"
)

// checkHTTP asks as Traefik would about a request for path, and returns the
// status.
func (p *process) checkHTTP(t *testing.T, path string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.http+"/check", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Forwarded-Method", "GET")
	r.Header.Set("X-Forwarded-Uri", path)
	r.Header.Set("X-Forwarded-For", "203.0.113.7")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// A client has one bucket, whichever door its requests come by.
func TestServeHTTPChecks(t *testing.T) {
	t.Parallel()
	p := start(t, "--policy", policyFile(t, limited(2)), "--http-addr", "127.0.0.1:0", "--http-dialect", "traefik")
	if got := check(t, p.conn, "/api/x"); got != 200 {
		t.Errorf("Check = %d, want 200", got)
	}
	for i, want := range []int{200, 429} {
		if got := p.checkHTTP(t, "/api/x"); got != want {
			t.Errorf("check %d over HTTP = %d, want %d", i+1, got, want)
		}
	}
	const denials = `sluice_decisions_total{decision="deny",domain="edge",door="http",reason="over_limit",rule="api"}`
	if got := p.metric(t, denials); got != "1" {
		t.Errorf("%s = %q, want 1", denials, got)
	}
	p.tell()
	if got := p.exit(t); got != 0 {
		t.Errorf("serve = %d, want 0", got)
	}
	if c, err := net.Dial("tcp", p.http); err == nil {
		c.Close()
		t.Error("the HTTP port listens after the end, want it closed")
	}
}

func TestServeNoHTTPChecks(t *testing.T) {
	t.Parallel()
	if p := start(t, "--policy", policyFile(t, limited(2))); p.http != "off" {
		t.Errorf("http = %q without --http-addr, want off", p.http)
	}
}
