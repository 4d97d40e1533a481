package httpcheck

import (
	"bufio"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/identity"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/limiter/doortest"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// parsed returns a request as a server reads it, whose lines are divided by
// a line end here.
func parsed(t *testing.T, text string) *http.Request {
	t.Helper()
	text = strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\r\n") + "\r\n\r\n"
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	if err != nil {
		t.Fatalf("ReadRequest(%q) = %v, want no error", text, err)
	}
	return r
}

func newHandler(t *testing.T, o Options) *Handler {
	t.Helper()
	o.Policies = func() *policy.Set { return nil }
	o.Limiter = doortest.Limiter(t, limiter.Options{})
	o.Now = func() time.Time { return noon }
	h, err := New(o)
	if err != nil {
		t.Fatalf("New(%+v) = %v, want no error", o, err)
	}
	return h
}

// What each proxy sends, as it was seen or as its documentation says, with a
// client's headers in the words of the others.
func TestAttributes(t *testing.T) {
	t.Parallel()
	const spoof = "X-Forwarded-Method: OPTIONS\nX-Forwarded-Uri: /healthz\nX-Forwarded-Host: evil\n"
	for name, tc := range map[string]struct {
		options Options
		request string
		want    identity.Attributes
	}{
		"envoy": {
			Options{},
			"POST /a/b%2Fc//d/../e%41?x=1&y=%20;z HTTP/1.1\nHost: Example.com:8080\nContent-Length: 0\nX-Envoy-Internal: true\n" + spoof +
				"X-Original-Uri: /healthz\nX-Original-Method: OPTIONS\nX-Forwarded-For: 6.6.6.6\nX-Real-Ip: 6.6.6.6\n",
			identity.Attributes{Method: "POST", Path: "/a/b%2Fc//d/../e%41?x=1&y=%20;z", Host: "Example.com:8080", Source: proxyAddr},
		},
		"istio with a prefix": {
			Options{Dialect: Istio, PathPrefix: "/check"},
			"HEAD /check/check/a?b HTTP/1.1\nHost: example.com\n",
			identity.Attributes{Method: "HEAD", Path: "/check/a?b", Host: "example.com", Source: proxyAddr},
		},
		"envoy with a prefix, asking about *": {
			Options{PathPrefix: "/check"},
			"OPTIONS /check* HTTP/1.1\nHost: example.com\n",
			identity.Attributes{Method: "OPTIONS", Path: "*", Host: "example.com", Source: proxyAddr},
		},
		"envoy with a stamp": {
			Options{PeerHeader: "x-client-ip"},
			"GET / HTTP/1.1\nHost: h\nX-Client-IP: 203.0.113.7:4711\nX-Forwarded-For: 6.6.6.6\n",
			identity.Attributes{
				Method: "GET", Path: "/", Host: "h", Source: netip.MustParseAddr("203.0.113.7"),
				Stamps: map[string]string{"x-client-ip": "203.0.113.7:4711"},
			},
		},
		"traefik": {
			Options{Dialect: Traefik},
			"GET /check HTTP/1.1\nHost: sluice\nX-Forwarded-Method: POST\nX-Forwarded-Uri: /login?x=1\nX-Forwarded-Host: example.com\n" +
				"X-Forwarded-For: 203.0.113.7\nX-Original-Uri: /healthz\nX-Original-Method: OPTIONS\nX-Real-Ip: 6.6.6.6\n",
			identity.Attributes{
				Method: "POST", Path: "/login?x=1", Host: "example.com", Source: netip.MustParseAddr("203.0.113.7"),
				Stamps: map[string]string{"x-forwarded-for": "203.0.113.7"},
			},
		},
		"traefik that trusts the header": {
			Options{Dialect: Traefik},
			"GET /check HTTP/1.1\nHost: sluice\nX-Forwarded-Method: GET\nX-Forwarded-Uri: /\nX-Forwarded-For: 6.6.6.6\nX-Forwarded-For: 1.1.1.1, 2001:db8::1\n",
			identity.Attributes{
				Method: "GET", Path: "/", Host: "sluice", Source: netip.MustParseAddr("2001:db8::1"),
				Stamps: map[string]string{"x-forwarded-for": "6.6.6.6,1.1.1.1, 2001:db8::1"},
			},
		},
		"caddy": {
			Options{Dialect: Caddy},
			"GET /check?x=1 HTTP/1.1\nHost: example.com\nX-Forwarded-Method: DELETE\nX-Forwarded-Uri: /a?x=1\nX-Forwarded-Host: example.com:8443\n" +
				"X-Forwarded-For: 203.0.113.7\nX-Original-Uri: /healthz\n",
			identity.Attributes{
				Method: "DELETE", Path: "/a?x=1", Host: "example.com:8443", Source: netip.MustParseAddr("203.0.113.7"),
				Stamps: map[string]string{"x-forwarded-for": "203.0.113.7"},
			},
		},
		"nginx": {
			Options{Dialect: Nginx},
			"GET /check HTTP/1.0\nHost: example.com\nX-Original-Method: PUT\nX-Original-URI: /a%2fb?c\nX-Real-IP: 203.0.113.7\n" + spoof + "X-Forwarded-For: 6.6.6.6\n",
			identity.Attributes{
				Method: "PUT", Path: "/a%2fb?c", Host: "example.com", Source: netip.MustParseAddr("203.0.113.7"),
				Stamps: map[string]string{"x-real-ip": "203.0.113.7"},
			},
		},
		"nginx that names its peer otherwise": {
			Options{Dialect: Nginx, PeerHeader: "X-Forwarded-For"},
			"GET /check HTTP/1.0\nHost: h\nX-Original-Method: GET\nX-Original-URI: /\nX-Real-IP: 6.6.6.6\nX-Forwarded-For: 6.6.6.6, 203.0.113.7\n",
			identity.Attributes{
				Method: "GET", Path: "/", Host: "h", Source: netip.MustParseAddr("203.0.113.7"),
				Stamps: map[string]string{"x-forwarded-for": "6.6.6.6, 203.0.113.7"},
			},
		},
		"nginx at a socket": {
			Options{Dialect: Nginx},
			"GET /check HTTP/1.0\nHost: h\nX-Original-Method: GET\nX-Original-URI: /\nX-Real-IP: unix:\n",
			identity.Attributes{Method: "GET", Path: "/", Host: "h", Pipe: true, Stamps: map[string]string{"x-real-ip": "unix:"}},
		},
		"no peer that is an address": {
			Options{Dialect: Traefik},
			"GET /check HTTP/1.1\nHost: h\nX-Forwarded-Method: GET\nX-Forwarded-Uri: /\nX-Forwarded-For: 203.0.113.7,\n",
			identity.Attributes{Method: "GET", Path: "/", Host: "h", Stamps: map[string]string{"x-forwarded-for": "203.0.113.7,"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := parsed(t, tc.request)
			got, fault := newHandler(t, tc.options).attributes(r, caller{addr: proxyAddr})
			if fault != "" {
				t.Fatalf("attributes(%s) = %q, want attributes", tc.request, fault)
			}
			got.Headers = nil
			tc.want.Time = noon
			if diff := cmp.Diff(&tc.want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
				t.Errorf("attributes(%s) (-want +got):\n%s", tc.request, diff)
			}
		})
	}
}

var (
	proxyAddr = netip.MustParseAddr("127.0.0.1")
	noon      = time.Unix(1_000_000_000, 0)
)

// The scheme and the size, where the proxy vouches for them.
func TestAttributesOfTransport(t *testing.T) {
	t.Parallel()
	const (
		forwarded = "X-Forwarded-Method: GET\nX-Forwarded-Uri: /\n"
		original  = "X-Original-Method: GET\nX-Original-URI: /\n"
	)
	for name, tc := range map[string]struct {
		dialect Dialect
		lines   string
		scheme  string
		size    int64
	}{
		"envoy":                {Envoy, "X-Forwarded-Proto: https\nContent-Length: 12\n", "https", 12},
		"envoy, part of it":    {Envoy, "Content-Length: 12\nX-Envoy-Auth-Partial-Body: true\n", "", 0},
		"envoy, not told":      {Istio, "Content-Length: 0\n", "", 0},
		"envoy, chunked":       {Envoy, "Transfer-Encoding: chunked\n", "", 0},
		"caddy":                {Caddy, forwarded + "X-Forwarded-Proto: https\nContent-Length: 12\n", "https", 0},
		"traefik":              {Traefik, forwarded + "X-Forwarded-Proto: http\n", "http", 0},
		"traefik, a websocket": {Traefik, forwarded + "X-Forwarded-Proto: wss\n", "", 0},
		"two words":            {Caddy, forwarded + "X-Forwarded-Proto: https\nX-Forwarded-Proto: http\n", "", 0},
		"nginx":                {Nginx, original + "X-Forwarded-Proto: https\nContent-Length: 12\n", "", 0},
	} {
		r := parsed(t, "GET / HTTP/1.1\nHost: h\n"+tc.lines)
		got, fault := newHandler(t, Options{Dialect: tc.dialect}).attributes(r, caller{})
		if fault != "" || got.Scheme != tc.scheme || got.Size != tc.size || got.Protocol != "" || !got.Time.Equal(noon) {
			t.Errorf("%s: attributes(%s) = %+v, %q, want scheme %q, size %d", name, tc.lines, got, fault, tc.scheme, tc.size)
		}
	}
}

func TestAttributesHeaders(t *testing.T) {
	t.Parallel()
	r := parsed(t, "GET / HTTP/1.1\nHost: h\nX-User-ID: a\nx-user-id: b\nCookie: a=1\nCookie: b=2\nEmpty:\nX-Forwarded-For: 1.1.1.1\nx-forwarded-for: 2.2.2.2\n")
	got, fault := newHandler(t, Options{}).attributes(r, caller{})
	want := map[string]string{"x-user-id": "a,b", "cookie": "a=1,b=2", "empty": "", "x-forwarded-for": "1.1.1.1,2.2.2.2"}
	if fault != "" || !cmp.Equal(want, got.Headers) {
		t.Errorf("attributes().Headers = %q, %q, want %q", got.Headers, fault, want)
	}
}

// A proxy that is not set up must be seen to be so, before a client finds out
// what it may say instead of the proxy.
func TestAttributesMissing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		options Options
		lines   string
		want    string
	}{
		"traefik, nothing":       {Options{Dialect: Traefik}, "", "want one X-Forwarded-Uri header, as the proxy must set it"},
		"traefik, no method":     {Options{Dialect: Traefik}, "X-Forwarded-Uri: /\n", "want one X-Forwarded-Method header, as the proxy must set it"},
		"traefik, nginx's words": {Options{Dialect: Traefik}, "X-Original-URI: /\nX-Original-Method: GET\n", "want one X-Forwarded-Uri header, as the proxy must set it"},
		"caddy, an empty path":   {Options{Dialect: Caddy}, "X-Forwarded-Uri:\nX-Forwarded-Method: GET\n", "want one X-Forwarded-Uri header, as the proxy must set it"},
		"caddy, two methods":     {Options{Dialect: Caddy}, "X-Forwarded-Uri: /\nX-Forwarded-Method: GET\nX-Forwarded-Method: PUT\n", "want one X-Forwarded-Method header, as the proxy must set it"},
		"nginx, caddy's words":   {Options{Dialect: Nginx}, "X-Forwarded-Uri: /\nX-Forwarded-Method: GET\n", "want one X-Original-Uri header, as the proxy must set it"},
		"nginx, two paths":       {Options{Dialect: Nginx}, "X-Original-URI: /\nX-Original-URI: /b\nX-Original-Method: GET\n", "want one X-Original-Uri header, as the proxy must set it"},
		"envoy, no prefix":       {Options{PathPrefix: "/check"}, "", "the path does not begin with http-path-prefix"},
		"envoy, nearly a prefix": {Options{PathPrefix: "/pa"}, "", "the path does not begin with http-path-prefix"},
		"envoy, half a prefix":   {Options{PathPrefix: "/path/"}, "", "the path does not begin with http-path-prefix"},
	} {
		r := parsed(t, "GET /path HTTP/1.1\nHost: h\n"+tc.lines)
		if attrs, got := newHandler(t, tc.options).attributes(r, caller{}); got != tc.want || attrs != nil {
			t.Errorf("%s: attributes(%s) = %v, %q, want %q", name, tc.lines, attrs, got, tc.want)
		}
	}
}
