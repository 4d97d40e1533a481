package authz_test

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/limiter/doortest"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// everything is a policy that looks at all that there is in a request, and
// repeats it.
const everything = `
domain: edge
trust: {proxies: [10.0.0.0/8]}
identities:
  user: {header: x-user-id, believe: always, missing: share}
rules:
  - name: "all"
    match: {path: /*}
    per: [ip, user, path, method, host, header.x-any]
    missing: share
    limits: [{rate: 1/1h}]
    deny: {body: '{path} {method} {host} {rule} {retry_after}'}
headers: {style: both}
`

func TestB047MalformedIsAnswered(t *testing.T) {
	t.Parallel()
	http := func(h *authv3.AttributeContext_HttpRequest) *authv3.CheckRequest {
		return &authv3.CheckRequest{Attributes: &authv3.AttributeContext{Request: &authv3.AttributeContext_Request{Http: h}}}
	}
	lines := func(values ...string) *corev3.HeaderMap {
		m := new(corev3.HeaderMap)
		for _, v := range values {
			m.Headers = append(m.Headers, &corev3.HeaderValue{Key: "x-any", RawValue: []byte(v)})
		}
		return m
	}
	long := strings.Repeat("a", 100<<10)
	for name, req := range map[string]*authv3.CheckRequest{
		"nil":                  nil,
		"nil attributes":       {},
		"nil request":          {Attributes: &authv3.AttributeContext{}},
		"nil http":             {Attributes: &authv3.AttributeContext{Request: &authv3.AttributeContext_Request{}}},
		"no path":              http(&authv3.AttributeContext_HttpRequest{Method: "GET"}),
		"not UTF-8":            http(&authv3.AttributeContext_HttpRequest{Path: "/\xff\xc3(", Method: "\xff", Host: "\x80"}),
		"raw header not UTF-8": http(&authv3.AttributeContext_HttpRequest{Path: "/", HeaderMap: lines("\xff\x00\r\n")}),
		"negative size":        http(&authv3.AttributeContext_HttpRequest{Path: "/", Size: math.MinInt64}),
		"100 kB header":        http(&authv3.AttributeContext_HttpRequest{Path: "/", Headers: map[string]string{"x-any": long, "x-user-id": long, "x-forwarded-for": long}}),
		"1 MiB of lines":       http(&authv3.AttributeContext_HttpRequest{Path: "/", HeaderMap: lines(strings.Split(strings.Repeat("abcdefg ", 1<<17), " ")...)}),
		"100 kB path":          http(&authv3.AttributeContext_HttpRequest{Path: "/" + strings.Repeat("../%2e/", 14<<10)}),
		"a pipe": {Attributes: &authv3.AttributeContext{Source: &authv3.AttributeContext_Peer{
			Address: &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: "/run/e.sock"}}},
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := server(t, doortest.Load(t, everything), limiter.Options{})
			for _, want := range []codes.Code{codes.OK, codes.ResourceExhausted} {
				resp, err := s.Check(t.Context(), req)
				if err != nil || codes.Code(resp.GetStatus().GetCode()) != want {
					t.Errorf("Check(%s) = %v, %v, want %v", name, resp.GetStatus(), err, want)
				}
				safe(t, resp)
			}
		})
	}
}

// adds says that h is one that the upstream has a word in as well.
func adds(h *corev3.HeaderValueOption) bool {
	return h.GetHeader().GetKey() == "Access-Control-Expose-Headers"
}

// safe wants resp to be one that can be sent, and that does Envoy no harm.
func safe(t *testing.T, resp *authv3.CheckResponse) {
	t.Helper()
	if _, err := proto.Marshal(resp); err != nil {
		t.Errorf("Check() = %v, want a message that can be sent: %v", resp, err)
	}
	if denied := resp.GetDeniedResponse(); (resp.GetStatus().GetCode() == 0) != (denied == nil) {
		t.Errorf("Check() = %v, want a denied response just where the status is not 0", resp)
	}
	for _, h := range append(resp.GetOkResponse().GetResponseHeadersToAdd(), resp.GetDeniedResponse().GetHeaders()...) {
		if v := h.GetHeader().GetValue(); strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f || r == utf8.RuneError }) {
			t.Errorf("Check() has header %v, want no control byte", h)
		}
		//nolint:staticcheck // deprecated, but where it is set Envoy drops the header of a denial
		if h.GetAppend() != nil || (h.GetAppendAction() != corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD) != adds(h) {
			t.Errorf("Check() has header %v, want it to overwrite unless it is one that adds, and no append", h)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	set := doortest.Load(b, perIP)
	for name, policies := range map[string]*policy.Set{"denied": set, "unknown": nil} {
		b.Run(name, func(b *testing.B) {
			s := server(b, policies, limiter.Options{})
			ctx, req := b.Context(), get("203.0.113.7", "/api/x")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Check(ctx, req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
