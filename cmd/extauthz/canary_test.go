package main

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rlcommonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/sluice-mesh/sluice/test/authority"
)

// canary is in everything that hostile clients write, and in every secret.
const canary = "c4n4ry"

// Whatever clients write, on any port, and whatever the secrets are: none of
// it is in a log line, a metric or the readiness, however much is logged and
// whatever fails.
func TestServeRepeatsNobodysWords(t *testing.T) {
	t.Parallel()
	ours, others := authority.New(t), authority.New(t)
	token, key, password := filepath.Join(t.TempDir(), "t"), filepath.Join(t.TempDir(), "k"), filepath.Join(t.TempDir(), "p")
	for _, file := range []string{token, key, password} {
		writeFile(t, file, strings.Repeat(canary, 4))
	}
	policy := policyFile(t, `
domain: edge
trust: {proxies: [127.0.0.1/32]}
identities: {token: {bearer: true, believe: always}}
rules:
  - {name: token, per: [token], cost: 'int(request.headers["authorization"])', limits: [{rate: 1/1h}]}
  - {name: login, descriptor: [user], limits: [{rate: 1/1h}]}
`)
	// Nobody listens at the address of Redis, so that every request is one
	// whose store failed.
	args := []string{
		"--log-level", "debug", "--policy", policy, "--http-addr", "127.0.0.1:0", "--http-dialect", "traefik",
		"--admin-token-file", token, "--hash-key-file", key, "--redis-url", "redis://127.0.0.1:1", "--redis-password-file", password,
	}
	plain := start(t, args...)
	encrypted := start(t, append(tlsArgs("grpc", ours.Issue(t, authority.Leaf{}), ours, "spiffe://td/envoy"), args...)...)
	askGRPC(t, plain)
	askHTTP(t, "http://"+plain.http)
	askHTTP(t, "http://"+plain.admin)
	for _, addr := range []string{plain.grpc, plain.http, plain.admin, encrypted.grpc} {
		for _, text := range []string{canary, "GET /" + canary + " HTTP/9.9\r\n" + canary + ": x\r\n\r\n", "\x16\x03\x01\x00\x05" + canary} {
			write(t, addr, text)
		}
	}
	stranger := authority.Leaf{URIs: []string{"spiffe://" + canary}, DNS: []string{canary + ".example"}}
	for _, a := range []*authority.Authority{ours, others} {
		c := a.Client(a.Issue(t, stranger))
		c.RootCAs, c.NextProtos = ours.Pool, []string{"h2"}
		if conn, err := tls.Dial("tcp", encrypted.grpc, c); err == nil {
			_, _ = conn.Read(make([]byte, 1)) // the server's alert
			conn.Close()
		}
	}
	eventually(t, "strangers are counted", func() bool {
		return encrypted.metric(t, `sluice_tls_handshake_failures_total{port="grpc",reason="certificate"}`) != ""
	})
	for _, p := range []*process{plain, encrypted} {
		for _, path := range []string{"/metrics", "/readyz"} {
			if _, body := p.get(t, path); strings.Contains(body, canary) {
				t.Errorf("GET %s = %s, want no %s in it", path, body, canary)
			}
		}
		p.tell()
		p.exit(t)
		if lines := p.log.lines(canary); len(lines) > 0 {
			t.Errorf("the log has %q, want no %s in it", lines, canary)
		}
	}
}

// askGRPC asks both services, and one that there is not. What is answered is
// no matter here.
func askGRPC(t *testing.T, p *process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "x-"+canary, canary), patience)
	defer cancel()
	headers := map[string]string{"authorization": "Bearer " + canary, "cookie": canary, ":path": canary, "x-forwarded-for": canary}
	for _, path := range []string{"/" + canary + "?" + canary, canary, "\x00" + canary, ""} {
		_, _ = authv3.NewAuthorizationClient(p.conn).Check(ctx, &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
			Source:            &authv3.AttributeContext_Peer{Principal: canary, Certificate: canary},
			Request:           &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{Method: canary, Host: canary, Path: path, Headers: headers, Body: canary}},
			ContextExtensions: map[string]string{"x": canary},
		}})
	}
	_, _ = rlsv3.NewRateLimitServiceClient(p.conn).ShouldRateLimit(ctx, &rlsv3.RateLimitRequest{
		Domain: "edge", Descriptors: []*rlcommonv3.RateLimitDescriptor{{Entries: []*rlcommonv3.RateLimitDescriptor_Entry{{Key: "user", Value: canary}, {Key: canary, Value: canary}}}},
	})
	_ = p.conn.Invoke(ctx, "/"+canary+"/"+canary, new(emptypb.Empty), new(emptypb.Empty))
}

func askHTTP(t *testing.T, url string) {
	t.Helper()
	for _, header := range []http.Header{
		{"Authorization": {"Bearer " + canary}, "X-Forwarded-Method": {"GET"}, "X-Forwarded-Uri": {"/" + canary}, "X-Forwarded-For": {"203.0.113.7"}},
		{"X-Forwarded-Method": {canary}, "X-Forwarded-Uri": {canary}, "X-Forwarded-For": {canary}, "Cookie": {canary}},
		{"Origin": {"http://" + canary}, "Sec-Fetch-Site": {canary}},
		{"Authorization": {"Basic " + canary}, "X-Large": {strings.Repeat(canary, 1<<18)}},
	} {
		for _, path := range []string{"/explain", "/" + canary + ";" + canary + "?" + canary + ";" + canary} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, strings.NewReader(`{"path":"`+canary+`"`))
			if err != nil {
				t.Fatal(err)
			}
			r.Header = header
			for _, host := range []string{"localhost", canary + ".example"} {
				r.Host = host
				if resp, err := http.DefaultClient.Do(r); err == nil {
					resp.Body.Close()
				}
			}
		}
	}
}

// write sends text as it is, and waits for the end of the connection, or a
// moment.
func write(t *testing.T, addr, text string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, text)
	_, _ = io.Copy(io.Discard, conn)
}
