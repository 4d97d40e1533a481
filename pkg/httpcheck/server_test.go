package httpcheck_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sluice-mesh/sluice/pkg/httpcheck"
)

// everything is a policy that looks at all that there is in a request, and
// repeats it.
const everything = `
domain: edge
trust: {proxies: [127.0.0.0/8]}
identities:
  user: {header: x-user-id, believe: always, missing: share}
rules:
  - name: "all"
    match: {path: /*}
    per: [ip, user, path, method, host, header.x-any, query.q, cookie.c]
    missing: share
    limits: [{rate: 1/1h}]
    deny: {body: '{path} {method} {host} {rule} {retry_after}'}
headers: {style: both}
`

// ask sends text as it is, from one connection, and returns the answer.
func ask(t *testing.T, network, address, text string) *http.Response {
	t.Helper()
	c, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go func() { _, _ = c.Write([]byte(text)) }() // refused before its end, if it is too long
	r, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: strings.SplitN(text, " ", 2)[0]})
	if err != nil {
		t.Fatalf("the answer to %.100q: %v", text, err)
	}
	return r
}

// Whatever comes over the wire is answered.
func TestB047WireIsAnswered(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		target, lines string
		want          int // of the second; the first is 200 if this is 429
	}{
		"a path":            {"GET /a?b", "", 429},
		"the head":          {"HEAD /a", "", 429},
		"absolute":          {"GET http://other.example/a", "", 429},
		"an asterisk":       {"OPTIONS *", "", 200}, // which no rule can name
		"an authority":      {"CONNECT example.com:443", "", 429},
		"a strange method":  {"BREW /a", "", 429},
		"doubled slashes":   {"GET //a//b", "", 429},
		"dots":              {"GET /../../a", "", 429},
		"not UTF-8":         {"GET /\xff\xc3(", "X-User-Id: \xff\xfe\r\n", 429},
		"100 kB":            {"GET /" + strings.Repeat("../%2e/", 14<<10), "X-User-Id: " + strings.Repeat("a", 100<<10) + "\r\n", 429},
		"10,000 addresses":  {"GET /", "X-Forwarded-For: " + strings.Repeat("1.1.1.1,", 10_000) + "\r\n", 429},
		"10,000 lines":      {"GET /", strings.Repeat("X-Forwarded-For: 127.0.0.1\r\n", 10_000), 429},
		"a body":            {"POST /", "Content-Length: 5\r\n\r\nhello", 429},
		"a body to come":    {"POST /", "Content-Length: 500000000\r\nExpect: 100-continue\r\n", 429},
		"2 MB":              {"GET /", "X-Any: " + strings.Repeat("a", 2<<20) + "\r\n", 431},
		"NUL":               {"GET /", "X-Any: \x00\r\n", 400},
		"a bare line end":   {"GET /", "X-Any: a\rb\r\n", 400},
		"a broken escape":   {"GET /100%", "", 400},
		"two hosts":         {"GET /", "Host: other\r\n", 400},
		"a chunked smuggle": {"POST /", "Content-Length: 3\r\nTransfer-Encoding: chunked, chunked\r\n", 501},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewUnstartedServer(handler(t, everything, httpcheck.Options{}))
			s.Config.DisableGeneralOptionsHandler = true
			s.Start()
			t.Cleanup(s.Close)
			address := s.Listener.Addr().String()
			text := fmt.Sprintf("%s HTTP/1.1\r\nHost: h\r\n%s\r\n", tc.target, tc.lines)
			if first := ask(t, "tcp", address, text).StatusCode; tc.want == 429 && first != 200 {
				t.Errorf("first %.100q = %d, want 200", text, first)
			}
			if got := ask(t, "tcp", address, text).StatusCode; got != tc.want {
				t.Errorf("second %.100q = %d, want %d", text, got, tc.want)
			}
		})
	}
}

// nginx asks in HTTP/1.0.
func TestHTTP10(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(handler(t, login, httpcheck.Options{Dialect: httpcheck.Nginx}))
	t.Cleanup(s.Close)
	const text = "GET /check HTTP/1.0\r\nHost: h\r\nX-Original-Method: POST\r\nX-Original-URI: /login\r\nConnection: close\r\n\r\n"
	for i, want := range []int{200, 403} {
		if got := ask(t, "tcp", s.Listener.Addr().String(), text); got.StatusCode != want || got.ContentLength != 0 {
			t.Errorf("request %d = %d of %d bytes, want %d of 0", i+1, got.StatusCode, got.ContentLength, want)
		}
	}
}

// Whoever can open the socket may ask. A request that comes to nobody's
// address has none, so that it counts by who its proxy says it is.
func TestUnixSocket(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(handler(t, login+"trust: {hops: 1}\n", httpcheck.Options{}))
	s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	for i, step := range []struct {
		chain string
		want  int
	}{
		{"1.1.1.1", 200}, {"6.6.6.6, 1.1.1.1", 429}, {"2.2.2.2", 200}, {"", 400},
	} {
		text := "POST /login HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: " + step.chain + "\r\n\r\n"
		if got := ask(t, "unix", l.Addr().String(), text).StatusCode; got != step.want {
			t.Errorf("step %d: %q = %d, want %d", i, step.chain, got, step.want)
		}
	}
}

// Whatever bytes come, if they are a request it is answered, and nothing in
// the answer is harmful.
func FuzzServeHTTP(f *testing.F) {
	dialects := []httpcheck.Dialect{httpcheck.Envoy, httpcheck.Traefik, httpcheck.Nginx}
	for i, lines := range []string{
		"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET /check HTTP/1.1\r\nHost: h\r\nX-Forwarded-Uri: /a\xff?b#c\r\nX-Forwarded-Method: P\"\r\nX-Forwarded-For: 1.1.1.1, [::1]:80\r\n\r\n",
		"GET /check HTTP/1.0\r\nX-Original-Uri: http://h/%00\r\nX-Original-Method: \xff\r\nX-Real-Ip: unix:\r\nContent-Type: application/grpc\r\n\r\n",
		"CONNECT h:443 HTTP/1.1\r\nHost: \"<\r\nX-User-Id: a\r\nX-User-Id: b\r\n\r\n",
	} {
		f.Add(uint8(i), []byte(lines))
	}
	f.Fuzz(func(t *testing.T, d uint8, text []byte) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(text)))
		if err != nil {
			return
		}
		r.RemoteAddr = proxy
		h := handler(t, everything, httpcheck.Options{Dialect: dialects[int(d)%len(dialects)]})
		for range 2 {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			safe(t, w)
		}
	})
}

func safe(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	switch w.Code {
	case 200, 400, 403, 429:
	default:
		t.Errorf("ServeHTTP() = %d, want 200, 400, 403 or 429", w.Code)
	}
	for name, lines := range w.Header() {
		for _, v := range lines {
			if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f || r == utf8.RuneError }) {
				t.Errorf("ServeHTTP() has header %s: %q, want no control byte", name, v)
			}
		}
	}
	if !utf8.Valid(w.Body.Bytes()) {
		t.Errorf("ServeHTTP() = body %q, want UTF-8", w.Body)
	}
}
