package authz_test

import (
	"encoding/json"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/limiter/doortest"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// wary are policies that look at all that there is in a request: who is
// calling is found in each of the ways that there are, what matches by each
// kind of pattern, and the answers repeat what they can.
var wary = []string{everything, `
domain: hops
trust: {hops: 2, header: forwarded, ipv4_prefix: 24}
identities:
  token: {bearer: true, believe: always, missing: share}
  sub: {claim: a.b, missing: ip}
  list: {header: x-any, believe: always, commas: true, hash: true, missing: share}
exempt: {paths: ['/h/{x}'], ips: [192.0.2.0/24]}
rules:
  - name: when
    match: {path: '~^/[^/]*', when: 'request.headers[?"x-any"].orValue("") != request.url_path || size(request.path) % 2 == 0'}
    per: [token, sub, list, cookie.sid, query.q, path, host]
    missing: share
    cost: 'request.size'
    limits: [{rate: 1/1h}, {rate: 3/1d, refill: sliding}]
    overrides: [{values: {host: [a]}, unlimited: true}, {when: 'claims.a.b == "x"', limits: [{rate: 2/1h}]}]
    deny: {content_type: application/json, body: '{"path":"{path}","method":"{method}","host":"{host}"}'}
  - {name: wide, match: {hosts: ['*.example.com'], headers: {upgrade: websocket}}, per: [ip, metadata.f.a, context.k], missing: share, limits: [{rate: 1/1h}]}
headers: {style: ietf, names: {rule: X-Rule}, cors: [https://app.example]}
`, `
domain: stamp
trust: {stamp: x-client, header: x-real-ip}
identities: {who: {principal: true, missing: 401}}
rules:
  - {name: refuses, match: {path: '/{a}/b'}, per: [who], limits: [{rate: 1/1h}]}
  - {name: all, per: [ip], missing: 403, limits: [{rate: 1/1h}], deny: {content_type: application/problem+json}}
headers: {cors: ['*']}
`}

// hostile are messages that have been trouble for others.
func hostile(f *testing.F) []*authv3.CheckRequest {
	f.Helper()
	all := []*authv3.CheckRequest{
		{},
		get("203.0.113.7", "/\r\nx: 1"), get("10.0.0.1", "/a/../b?c#d"), get("::1", ""), get("nonsense", "*"),
		get("::ffff:10.0.0.1", "/%2e%2e/%5c..;/%zz%00//a?q=%ff&q=1"), get("fe80::1%eth0", "http://h/x"),
	}
	for _, headers := range []map[string]string{
		{"x-forwarded-for": strings.Repeat("1.1.1.1, ", 10_000) + "203.0.113.7", "x-any": "a\r\nset-cookie: b=c"},
		{"forwarded": `for="[2001:db8::1]:80";by=_x, for=unknown, for="\"`, "x-real-ip": "0x7f.1"},
		{"authorization": "bEaReR  a b", "cookie": `sid="a;b"; sid=c; =;`, "X-Any": "1", "x-any": "2", "": "3", ":path": "/other"},
		{"content-type": "application/grpc", "origin": "https://app.example", "x-user-id": "a,b", "upgrade": "h2c, WebSocket"},
		{"origin": "https://app.example\r\nx: y", "x-user-id": "\xff\xfe\x00", "authorization": "Bearer " + strings.Repeat("x", 100_000)},
	} {
		req := get("10.0.0.5", "/api/x")
		req.Attributes.Request.Http.Headers = headers
		all = append(all, req)
	}
	return append(all, nested(f))
}

// nested has metadata of every kind, and the other fields at their ends.
func nested(f *testing.F) *authv3.CheckRequest {
	f.Helper()
	payload, err := structpb.NewStruct(map[string]any{"a": map[string]any{"b": []any{1.5, nil, true, map[string]any{"c": "\x00"}}}})
	if err != nil {
		f.Fatal(err)
	}
	req := get("192.0.2.9", "/h/1")
	a := req.Attributes
	a.Source.Principal = "spiffe://a/\r\n"
	a.ContextExtensions = map[string]string{"k": "\x00", "domain": "hops"}
	a.Request.Http.Size = -1 << 63
	a.Request.Http.HeaderMap = &corev3.HeaderMap{Headers: []*corev3.HeaderValue{{Key: "X-Any", RawValue: []byte("\xff\r\n")}, nil}}
	a.MetadataContext = &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{
		"envoy.filters.http.jwt_authn": {Fields: map[string]*structpb.Value{"p": structpb.NewStructValue(payload), "nil": nil}}, "f": payload, "": nil,
	}}
	return req
}

// Whatever bytes come, a CheckRequest that they make is answered by each
// policy: with room, and without.
func FuzzCheck(f *testing.F) {
	for _, req := range hostile(f) {
		for i := range wary {
			seed, err := proto.Marshal(req)
			if err == nil { // one that is not UTF-8 cannot be sent either
				f.Add(seed, uint8(i))
			}
		}
	}
	sets := make([]*policy.Set, len(wary))
	for i, text := range wary {
		sets[i] = doortest.Load(f, text)
	}
	f.Fuzz(func(t *testing.T, data []byte, which uint8) {
		req := new(authv3.CheckRequest)
		if proto.Unmarshal(data, req) != nil {
			return
		}
		s := server(t, sets[int(which)%len(sets)], limiter.Options{})
		for range 3 {
			resp, err := s.Check(t.Context(), req)
			if err != nil {
				t.Fatalf("Check(%v) = %v, want no error", req, err)
			}
			safe(t, resp)
			wellFormed(t, resp)
		}
	})
}

// wellFormed wants a body to be of its type, whatever was filled in.
func wellFormed(t *testing.T, resp *authv3.CheckResponse) {
	t.Helper()
	for _, h := range resp.GetDeniedResponse().GetHeaders() {
		if body := resp.GetDeniedResponse().GetBody(); strings.Contains(h.GetHeader().GetValue(), "json") && !json.Valid([]byte(body)) {
			t.Errorf("Check() has the body %q, want JSON", body)
		}
	}
}
