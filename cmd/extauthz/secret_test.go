package main

import (
	"strings"
	"testing"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
)

// B013: what a client sends as its secret is in no log line and no metric,
// however much is logged.
func TestServeKeepsClientsSecrets(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-token-XYZ"
	p := start(t, "--log-level", "debug", "--policy", policyFile(t, `
domain: edge
identities: {token: {bearer: true, believe: always}}
rules:
  - {name: token, per: [token], limits: [{rate: 1/1h}]}
  - {name: whole, per: [header.authorization], cost: 'int(request.headers["authorization"])', limits: [{rate: 1/1h}]}
`))
	req := &authv3.CheckRequest{Attributes: &authv3.AttributeContext{Request: &authv3.AttributeContext_Request{
		Http: &authv3.AttributeContext_HttpRequest{Method: "GET", Path: "/", Headers: map[string]string{"authorization": "Bearer " + secret}},
	}}}
	for _, want := range []bool{true, false} {
		resp, err := authv3.NewAuthorizationClient(p.conn).Check(t.Context(), req)
		if err != nil || (resp.GetStatus().GetCode() == 0) != want {
			t.Errorf("Check() = %v, %v, want allowed %v", resp, err, want)
		}
		if text := resp.String(); strings.Contains(text, secret) {
			t.Errorf("Check() = %s, want no secret in it", text)
		}
	}
	if _, metrics := p.get(t, "/metrics"); strings.Contains(metrics, secret) || !strings.Contains(metrics, `rule="token"`) {
		t.Errorf("GET /metrics = %s, want the rule and no secret", metrics)
	}
	if got := p.log.lines(secret); len(got) > 0 {
		t.Errorf("the log has %q, want no secret in it", got)
	}
}
