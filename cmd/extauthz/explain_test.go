package main

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

const believing = `domain: edge
trust: {proxies: [10.0.0.0/8]}
identities:
  tenant: {claim: org.id, missing: skip}
  stamped: {principal: true, missing: skip}
rules:
  - {name: tenants, per: [tenant], limits: [{rate: 9/1h}]}
  - {name: peers, per: [stamped], limits: [{rate: 9/1h}]}
  - {name: routes, per: [context.tier], missing: skip, limits: [{rate: 9/1h}]}
  - {name: filters, per: [metadata.my.filter.x], missing: skip, limits: [{rate: 9/1h}]}
  - {name: hosts, match: {hosts: [a.example.com]}, per: [ip], limits: [{rate: 9/1h}]}
  - {name: entries, descriptor: [k, 'l=m,n'], limits: [{rate: 9/1h}]}
`

func TestExplain(t *testing.T) {
	t.Parallel()
	path := policyFile(t, believing)
	for _, tt := range []struct {
		args []string
		want []string // all in standard output
	}{
		{[]string{"GET /x", "--peer", "10.0.0.5", "-H", "x-forwarded-for: 6.6.6.6, 1.2.3.4", "-H", "host: A.example.com:80"}, []string{"1.2.3.4, found in x-forwarded-for", "hosts    applies", "per ip: 1.2.3.4"}},
		{[]string{"PUT", "/x", "--host", "a.example.com", "--peer", "unix"}, []string{"PUT /x", "refused: hosts wants ip"}},
		{[]string{"/x", "--claim", "org.id=7"}, []string{"per tenant: 7"}},
		{[]string{"/x", "--principal", "spiffe://x/y"}, []string{"per stamped: spiffe://x/y"}},
		{[]string{"/x", "--context", "tier=a=b"}, []string{"per context.tier: a=b"}},
		{[]string{"/x", "--metadata", `{"my.filter": {"x": "seven"}}`}, []string{"per metadata.my.filter.x: seven"}},
		{[]string{"--descriptor", `k=1.2.3.4,l=m\,n`}, []string{"entries  applies", "per k: 1.2.3.4"}},
		{[]string{"--descriptor", "k=v,l=x", "--hits", "4"}, []string{"at a cost of 4 each", "entries  mismatch"}},
	} {
		code, stdout, stderr := ran(append([]string{"explain", "--policy", path}, tt.args...), nil)
		if code != exitOK || stderr != "" {
			t.Errorf("run(explain %q) = %d, stderr %q, want 0 and nothing", tt.args, code, stderr)
		}
		for _, part := range tt.want {
			if !strings.Contains(stdout, part) {
				t.Errorf("run(explain %q) says %s, want %q in it", tt.args, stdout, part)
			}
		}
	}
}

func TestExplainFails(t *testing.T) {
	t.Parallel()
	bad := policyFile(t, badPolicy)
	code, stdout, stderr := ran([]string{"explain", "--policy", bad, "/x"}, nil)
	if code != exitFailed || stdout != "" || !strings.Contains(stderr, bad+":5:") {
		t.Errorf("run(explain) of a bad policy = %d, %q, %q, want 1 and its faults", code, stdout, stderr)
	}
	code, _, stderr = ran([]string{"explain", "--server", "unix:" + filepath.Join(t.TempDir(), "none"), "/x"}, nil)
	if code != exitFailed || !strings.Contains(stderr, "none") {
		t.Errorf("run(explain) of no server = %d, %q, want 1 and its address", code, stderr)
	}
}

// explained asks p what is left for the peer of check.
func explained(t *testing.T, args ...string) (left int64, allowed bool) {
	t.Helper()
	code, stdout, stderr := ran(append([]string{"explain", "--json", "/api/x", "--peer", "203.0.113.7"}, args...), nil)
	var got struct {
		Rules []struct {
			Bucket *struct{ Limits []struct{ Left *int64 } }
		}
		Decision struct{ Allowed bool }
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitOK || got.Rules[0].Bucket == nil || got.Rules[0].Bucket.Limits[0].Left == nil {
		t.Fatalf("run(explain %q) = %d, %s, %s, want 0 and a balance", args, code, stdout, stderr)
	}
	return *got.Rules[0].Bucket.Limits[0].Left, got.Decision.Allowed
}

// A running server explains by its own buckets, and spends nothing on it.
func TestExplainServer(t *testing.T) {
	t.Parallel()
	p := start(t, "--policy", policyFile(t, limited(2)))
	for want := int64(2); want >= 0; want-- {
		for range 3 {
			if left, allowed := explained(t, "--server", p.admin); left != want || allowed != (want > 0) {
				t.Errorf("run(explain) after %d requests = %d left, allowed %v, want %d", 2-want, left, allowed, want)
			}
		}
		check(t, p.conn, "/api/x")
	}
	if got := p.metric(t, `sluice_decisions_total{decision="allow",domain="edge",door="authz",reason="within",rule="api"}`); got != "2" {
		t.Errorf("sluice_decisions_total = %s, want 2: an explanation is none", got)
	}
	resp, err := http.Get("http://" + p.admin + "/explain")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET /explain answers %d, want 405", resp.StatusCode)
	}
}
