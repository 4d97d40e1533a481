package main

import (
	"fmt"
	"net/http"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
)

// Behind a proxy that trust does not name, all users are one caller: the log
// and the metrics say so, on each door that is told of the header.
func TestServeTellsOfCollapse(t *testing.T) {
	t.Parallel()
	for _, door := range []struct {
		name string
		ask  func(t *testing.T, p *process, client string)
	}{
		{"authz", func(t *testing.T, p *process, client string) {
			t.Helper()
			peer := &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{Address: "192.0.2.10"}}}
			_, err := authv3.NewAuthorizationClient(p.conn).Check(t.Context(), &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
				Source: &authv3.AttributeContext_Peer{Address: peer},
				Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{
					Method: "GET", Path: "/api/x", Headers: map[string]string{"x-forwarded-for": client},
				}},
			}})
			if err != nil {
				t.Fatalf("Check() = %v, want an answer", err)
			}
		}},
		{"http", func(t *testing.T, p *process, client string) {
			t.Helper()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.http+"/", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			req.Header = http.Header{"X-Original-Method": {"GET"}, "X-Original-Uri": {"/api/x"}, "X-Real-Ip": {"192.0.2.10"}, "X-Forwarded-For": {client}}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}},
	} {
		t.Run(door.name, func(t *testing.T) {
			t.Parallel()
			p := start(t, "--policy", policyFile(t, limited(1000)), "--http-addr", "127.0.0.1:0", "--http-dialect", "nginx")
			for i := range 100 {
				door.ask(t, p, fmt.Sprintf("203.0.113.%d", i))
			}
			p.log.await(t, "one peer brings many forwarded addresses", 1)
			if got := p.metric(t, `sluice_identity_collapse_total{domain="edge",reason="untrusted_proxy",rule=""}`); got != "1" {
				t.Errorf("sluice_identity_collapse_total = %q, want 1", got)
			}
			if lines := p.log.lines("203.0.113."); len(lines) > 0 {
				t.Errorf("the log has %s, want no address in it", lines)
			}
		})
	}
}
