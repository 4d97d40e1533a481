package httpcheck_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/sluice-mesh/sluice/pkg/httpcheck"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/limiter/doortest"
	"github.com/sluice-mesh/sluice/pkg/memstore"
	"github.com/sluice-mesh/sluice/pkg/policy"
	"github.com/sluice-mesh/sluice/pkg/policyfile"
)

func Example() {
	set, faults := policyfile.Load(policyfile.Options{Paths: []string{"edge.yaml"}, FS: fstest.MapFS{"edge.yaml": {Data: []byte(`
domain: edge
rules:
  - name: login
    match: {path: /login, methods: [POST]}
    per: [ip]
    limits: [{rate: 1/10s}]
`)}}})
	store, err1 := memstore.New(memstore.Options{})
	l, err2 := limiter.New(limiter.Options{Store: store})
	h, err3 := httpcheck.New(httpcheck.Options{
		Policies: func() *policy.Set { return set }, Limiter: l, Dialect: httpcheck.Traefik,
	})
	if err1 != nil || err2 != nil || err3 != nil {
		fmt.Println(faults, err1, err2, err3)
		return
	}
	for range 2 {
		r := httptest.NewRequest("GET", "/check", nil)
		r.RemoteAddr = "127.0.0.1:40000" // Traefik's
		r.Header.Set("X-Forwarded-Method", "POST")
		r.Header.Set("X-Forwarded-Uri", "/login?next=/")
		r.Header.Set("X-Forwarded-For", "203.0.113.7")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Printf("%d, Retry-After %q\n", w.Code, w.Header().Get("Retry-After"))
	}
	// Output:
	// 200, Retry-After ""
	// 429, Retry-After "10"
}

const proxy = "127.0.0.1:40000"

func handler(t testing.TB, yaml string, o httpcheck.Options) *httpcheck.Handler {
	t.Helper()
	set := doortest.Load(t, yaml)
	o.Policies = func() *policy.Set { return set }
	if o.Limiter == nil {
		o.Limiter = doortest.Limiter(t, limiter.Options{})
	}
	h, err := httpcheck.New(o)
	if err != nil {
		t.Fatalf("New(%+v) = %v, want no error", o, err)
	}
	return h
}

// check asks h as the proxy at 127.0.0.1 does, with header lines.
func check(h http.Handler, method, target string, lines ...string) *http.Response {
	r := httptest.NewRequest(method, target, nil)
	r.RemoteAddr = proxy
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

const login = `
domain: edge
rules:
  - name: login
    match: {path: /login, methods: [POST]}
    per: [ip]
    limits: [{rate: 1/1h}]
`

func TestB084StatusThatNginxPassesOn(t *testing.T) {
	t.Parallel()
	h := handler(t, login, httpcheck.Options{Dialect: httpcheck.Nginx})
	lines := []string{"X-Original-Method: POST", "X-Original-URI: /login", "X-Real-IP: 203.0.113.7"}
	if got := check(h, "GET", "/check", lines...); got.StatusCode != 200 {
		t.Errorf("first ServeHTTP() = %v, want 200", got.StatusCode)
	}
	got := check(h, "GET", "/check", lines...)
	if got.StatusCode != 403 || got.Header.Get("X-Sluice-Status") != "429" || got.Header.Get("Retry-After") != "3600" || got.Header.Get("X-RateLimit-Limit") != "1" {
		t.Errorf("second ServeHTTP() = %v, %v, want 403 for 429, with the headers of the limit", got.StatusCode, got.Header)
	}
}

func TestB085OriginalRequest(t *testing.T) {
	t.Parallel()
	l := doortest.Limiter(t, limiter.Options{})
	traefik := handler(t, login, httpcheck.Options{Dialect: httpcheck.Traefik, Limiter: l})
	nginx := handler(t, login, httpcheck.Options{Dialect: httpcheck.Nginx, Limiter: l})
	for i, step := range []struct {
		door  http.Handler
		lines []string
		want  int
	}{
		{traefik, []string{"X-Forwarded-Method: POST", "X-Forwarded-Uri: /login?x=1"}, 200},
		{traefik, []string{"X-Forwarded-Method: POST", "X-Forwarded-Uri: /login?x=1"}, 429},
		{nginx, []string{"X-Original-Method: POST", "X-Original-URI: /login"}, 403},
	} {
		if got := check(step.door, "GET", "/check", step.lines...).StatusCode; got != step.want {
			t.Errorf("step %d: ServeHTTP(%q) = %d, want %d", i, step.lines, got, step.want)
		}
	}
}

// said are a request's lines in the words of each dialect.
var said = map[httpcheck.Dialect][]string{
	httpcheck.Envoy:   {},
	httpcheck.Istio:   {},
	httpcheck.Traefik: {"X-Forwarded-Method: POST", "X-Forwarded-Uri: /login", "X-Forwarded-Host: example.com", "X-Forwarded-For: 203.0.113.7"},
	httpcheck.Caddy:   {"X-Forwarded-Method: POST", "X-Forwarded-Uri: /login", "X-Forwarded-Host: example.com", "X-Forwarded-For: 203.0.113.7"},
	httpcheck.Nginx:   {"X-Original-Method: POST", "X-Original-URI: /login", "X-Real-IP: 203.0.113.7"},
}

// A client that writes what another proxy would, or an address of its own,
// neither gets out of its bucket nor out of the rule.
func TestSpoofing(t *testing.T) {
	t.Parallel()
	for dialect, lines := range said {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			h := handler(t, login, httpcheck.Options{Dialect: dialect})
			if got := check(h, "POST", "/login", lines...).StatusCode; got != 200 {
				t.Fatalf("ServeHTTP(%q) = %d, want 200", lines, got)
			}
			for i := range 3 {
				spoofed := append(lines[:len(lines):len(lines)], spoof(lines, i)...)
				if got := check(h, "POST", "/login", spoofed...).StatusCode; got != 429 && got != 403 {
					t.Errorf("ServeHTTP(%q) = %d, want a denial", spoofed, got)
				}
			}
		})
	}
}

// spoof returns a client's lines that none of the proxy's own replaces.
func spoof(own []string, i int) []string {
	var all []string
	for _, line := range []string{
		"X-Forwarded-Method: OPTIONS", "X-Forwarded-Uri: /elsewhere", "X-Forwarded-Host: evil.example", "X-Forwarded-For: 6.6.6.%d",
		"X-Original-Method: OPTIONS", "X-Original-URI: /elsewhere", "X-Original-URL: /elsewhere", "X-Real-IP: 6.6.6.%d",
		"Forwarded: for=6.6.6.%d", "X-Envoy-External-Address: 6.6.6.%d", "X-Envoy-Original-Path: /elsewhere", "X-HTTP-Method-Override: GET",
		"X-Rewrite-URL: /elsewhere", "X-Client-IP: 6.6.6.%d", "X-Sluice-Status: 200", "X-Forwarded-Prefix: /elsewhere",
	} {
		name, _, _ := strings.Cut(line, ":")
		if !strings.Contains(strings.Join(own, "\n"), name+":") {
			all = append(all, strings.ReplaceAll(line, "%d", fmt.Sprint(i)))
		}
	}
	return all
}

// Whose bucket a request is charged to, at each door and with each trust. A
// pair is two requests, and whether they are one caller.
func TestWhose(t *testing.T) {
	t.Parallel()
	const nobody = "{}"
	for name, tc := range map[string]struct {
		trust        string
		options      httpcheck.Options
		first, other []string
		one          bool
	}{
		"envoy, nobody trusted":                   {nobody, httpcheck.Options{}, forwarded("1.1.1.1"), forwarded("2.2.2.2"), true},
		"envoy, the caller trusted":               {"{proxies: [127.0.0.0/8]}", httpcheck.Options{}, forwarded("1.1.1.1"), forwarded("2.2.2.2"), false},
		"envoy, the caller trusted, spoofed":      {"{proxies: [127.0.0.0/8]}", httpcheck.Options{}, forwarded("1.1.1.1"), forwarded("6.6.6.6, 1.1.1.1"), true},
		"envoy, one hop":                          {"{hops: 1}", httpcheck.Options{}, forwarded("1.1.1.1"), forwarded("2.2.2.2"), false},
		"envoy, a stamped peer":                   {nobody, httpcheck.Options{PeerHeader: "X-Peer"}, []string{"X-Peer: 1.1.1.1"}, []string{"X-Peer: 2.2.2.2"}, false},
		"envoy, a stamped peer, forwarded spoofs": {nobody, httpcheck.Options{PeerHeader: "X-Peer"}, []string{"X-Peer: 1.1.1.1", "X-Forwarded-For: 6.6.6.6"}, []string{"X-Peer: 1.1.1.1"}, true},
		"envoy, a policy's stamp":                 {"{stamp: x-peer}", httpcheck.Options{PeerHeader: "X-Peer"}, []string{"X-Peer: 1.1.1.1"}, []string{"X-Peer: 2.2.2.2"}, false},
		"envoy, a stamped peer that is trusted":   {"{proxies: [10.0.0.0/8]}", httpcheck.Options{PeerHeader: "X-Peer"}, append(forwarded("1.1.1.1"), "X-Peer: 10.0.0.1"), append(forwarded("2.2.2.2"), "X-Peer: 10.0.0.1"), false},
		"traefik, nobody trusted":                 {nobody, httpcheck.Options{Dialect: httpcheck.Traefik}, forwarded("1.1.1.1"), forwarded("2.2.2.2"), false},
		"traefik, nobody trusted, spoofed":        {nobody, httpcheck.Options{Dialect: httpcheck.Traefik}, forwarded("1.1.1.1"), forwarded("6.6.6.6, 1.1.1.1"), true},
		"traefik, the caller trusted":             {"{proxies: [127.0.0.0/8]}", httpcheck.Options{Dialect: httpcheck.Traefik}, forwarded("1.1.1.1"), forwarded("2.2.2.2"), false},
		"traefik, a balancer before it":           {"{proxies: [10.0.0.0/8]}", httpcheck.Options{Dialect: httpcheck.Traefik}, forwarded("1.1.1.1, 10.0.0.1"), forwarded("2.2.2.2, 10.0.0.1"), false},
		"traefik, a balancer, spoofed":            {"{proxies: [10.0.0.0/8]}", httpcheck.Options{Dialect: httpcheck.Traefik}, forwarded("1.1.1.1, 10.0.0.1"), forwarded("6.6.6.6, 1.1.1.1, 10.0.0.2"), true},
		"traefik, one hop before it":              {"{hops: 1}", httpcheck.Options{Dialect: httpcheck.Traefik}, forwarded("6.6.6.6, 1.1.1.1, 10.0.0.1"), forwarded("1.1.1.1, 10.0.0.1"), true},
		"nginx, its peer":                         {nobody, httpcheck.Options{Dialect: httpcheck.Nginx}, []string{"X-Real-IP: 1.1.1.1"}, []string{"X-Real-IP: 2.2.2.2"}, false},
		"nginx, a balancer before it":             {"{proxies: [10.0.0.0/8]}", httpcheck.Options{Dialect: httpcheck.Nginx}, append(forwarded("1.1.1.1"), "X-Real-IP: 10.0.0.1"), append(forwarded("2.2.2.2"), "X-Real-IP: 10.0.0.1"), false},
		"nginx, walking the same header":          {"{proxies: [127.0.0.0/8], header: x-real-ip}", httpcheck.Options{Dialect: httpcheck.Nginx}, []string{"X-Real-IP: 1.1.1.1"}, []string{"X-Real-IP: 2.2.2.2"}, false},
		"nginx, a forwarded header only":          {nobody, httpcheck.Options{Dialect: httpcheck.Nginx}, forwarded("1.1.1.1"), forwarded("2.2.2.2"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := handler(t, login+"trust: "+tc.trust+"\n", tc.options)
			words := []string{"X-Forwarded-Method: POST", "X-Forwarded-Uri: /login", "X-Original-Method: POST", "X-Original-URI: /login"}
			if got := check(h, "POST", "/login", append(words, tc.first...)...).StatusCode; got != 200 {
				t.Fatalf("ServeHTTP(%q) = %d, want 200", tc.first, got)
			}
			got := check(h, "POST", "/login", append(words, tc.other...)...).StatusCode
			if (got != 200) != tc.one {
				t.Errorf("ServeHTTP(%q) after %q = %d, want one caller %v", tc.other, tc.first, got, tc.one)
			}
		})
	}
}

func forwarded(chain string) []string { return []string{"X-Forwarded-For: " + chain} }

// An identity header is believed from the peer of the proxy, not from the
// proxy, which passes on everybody's.
func TestWhoIsBelieved(t *testing.T) {
	t.Parallel()
	const users = `
domain: edge
trust: {proxies: [127.0.0.0/8, 10.0.0.0/8]}
identities: {user: {header: x-user-id, missing: 401}}
rules: [{name: all, match: {path: /*}, per: [user], limits: [{rate: 9/1h}]}]
`
	for name, tc := range map[string]struct {
		options httpcheck.Options
		lines   []string
		want    int
	}{
		"a client of traefik":        {httpcheck.Options{Dialect: httpcheck.Traefik}, forwarded("203.0.113.7"), 401},
		"a balancer before traefik":  {httpcheck.Options{Dialect: httpcheck.Traefik}, forwarded("203.0.113.7, 10.0.0.1"), 200},
		"a client of nginx":          {httpcheck.Options{Dialect: httpcheck.Nginx}, []string{"X-Real-IP: 203.0.113.7"}, 401},
		"a client of a stamping one": {httpcheck.Options{PeerHeader: "x-peer"}, []string{"X-Peer: 203.0.113.7"}, 401},
		"envoy itself":               {httpcheck.Options{}, forwarded("203.0.113.7"), 200},
	} {
		lines := append([]string{
			"X-User-Id: anna", "X-Forwarded-Method: GET", "X-Forwarded-Uri: /", "X-Original-Method: GET", "X-Original-URI: /",
		}, tc.lines...)
		if got := check(handler(t, users, tc.options), "GET", "/", lines...).StatusCode; got != tc.want {
			t.Errorf("%s: ServeHTTP(%q) = %d, want %d", name, tc.lines, got, tc.want)
		}
	}
}

func TestCallers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		callers []string
		from    string
		want    int
	}{
		{nil, "127.0.0.1:1", 200},
		{nil, "127.9.9.9:1", 200},
		{nil, "[::1]:1", 200},
		{nil, "[::ffff:127.0.0.1]:1", 200},
		{nil, "10.0.0.1:1", 403},
		{nil, "[2001:db8::1]:1", 403},
		{nil, "", 403},
		{nil, "@", 403},
		{[]string{"10.0.0.0/8"}, "10.0.0.1:1", 200},
		{[]string{"10.0.0.0/8"}, "127.0.0.1:1", 403},
		{[]string{"0.0.0.0/0", "::/0"}, "203.0.113.7:1", 200},
	} {
		var o httpcheck.Options
		for _, c := range tc.callers {
			o.Callers = append(o.Callers, netip.MustParsePrefix(c))
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = tc.from
		r.Header.Set("X-Forwarded-For", "127.0.0.1")
		w := httptest.NewRecorder()
		handler(t, login, o).ServeHTTP(w, r)
		if w.Code != tc.want {
			t.Errorf("ServeHTTP() from %q, callers %q = %d, want %d", tc.from, tc.callers, w.Code, tc.want)
		}
	}
}

func TestNewWants(t *testing.T) {
	t.Parallel()
	l := doortest.Limiter(t, limiter.Options{})
	policies := func() *policy.Set { return nil }
	for want, o := range map[string]httpcheck.Options{
		"httpcheck: Options.Policies is required":                                             {Limiter: l},
		"httpcheck: Options.Limiter is required":                                              {Policies: policies},
		`httpcheck: Options.Dialect is "haproxy", want envoy, istio, traefik, caddy or nginx`: {Policies: policies, Limiter: l, Dialect: "haproxy"},
		`httpcheck: Options.PathPrefix is "/a", want none: in the caddy dialect the path is in a header`: {
			Policies: policies, Limiter: l, Dialect: httpcheck.Caddy, PathPrefix: "/a",
		},
		`httpcheck: Options.PathPrefix is "a", want one that begins with /`: {Policies: policies, Limiter: l, PathPrefix: "a"},
		"httpcheck: Options.DenyStatus is 429, which the proxy would take for no denial": {
			Policies: policies, Limiter: l, Dialect: httpcheck.Nginx, DenyStatus: 429,
		},
		`httpcheck: Options.PeerHeader is "x peer", want a header's name`:                {Policies: policies, Limiter: l, PeerHeader: "x peer"},
		"httpcheck: Options.DenyStatus is 503, which the proxy would take for no denial": {Policies: policies, Limiter: l, DenyStatus: 503},
		"httpcheck: Options.DenyStatus is 204, which the proxy would take for no denial": {
			Policies: policies, Limiter: l, Dialect: httpcheck.Traefik, DenyStatus: 204,
		},
		"httpcheck: Options.Callers: [0]: found invalid Prefix, want a network such as 10.0.0.0/8": {
			Policies: policies, Limiter: l, Callers: make([]netip.Prefix, 1),
		},
	} {
		if _, err := httpcheck.New(o); err == nil || err.Error() != want {
			t.Errorf("New() = %v, want %q", err, want)
		}
	}
}
