package admin_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-mesh/sluice/internal/admin"
)

// serve serves o at addr until the test ends, and returns a client that
// connects there whatever it asks for.
func serve(t *testing.T, network, addr string, o admin.Options) *http.Client {
	t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: admin.Handler(o)}}
	s.Start()
	t.Cleanup(s.Close)
	at := l.Addr().String()
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, at)
	}}}
}

// A lookup is a request with a name for the port, and headers.
type lookup struct {
	method, host, path string
	header             map[string]string
	body               string
}

func (l lookup) ask(t *testing.T, c *http.Client) (int, string) {
	t.Helper()
	method := l.method
	if method == "" {
		method = http.MethodGet
	}
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+l.host+l.path, strings.NewReader(l.body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range l.header {
		r.Header.Set(name, value)
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatalf("%+v: %v", l, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// A page cannot make its own name lead here: the port answers to names that
// are its own alone.
func TestHostRule(t *testing.T) {
	t.Parallel()
	const refused = http.StatusMisdirectedRequest
	loopback := serve(t, "tcp", "127.0.0.1:0", options(admin.Readiness{Ready: true}))
	named := options(admin.Readiness{Ready: true})
	named.Hosts = []string{"sluice.edge.svc", "extauthz"}
	more := serve(t, "tcp", "127.0.0.1:0", named)
	named.Hosts = []string{"*"}
	all := serve(t, "tcp", "127.0.0.1:0", named)
	socket := serve(t, "unix", filepath.Join(t.TempDir(), "s"), options(admin.Readiness{Ready: true}))
	for _, tt := range []struct {
		client *http.Client
		host   string
		want   int
	}{
		{loopback, "localhost", 200},
		{loopback, "LocalHost:9002", 200},
		{loopback, "localhost.", 200},
		{loopback, "127.0.0.1:1234", 200},
		{loopback, "127.1.2.3", 200},
		{loopback, "[::1]:9002", 200},
		{loopback, "[::ffff:127.0.0.1]", 200},
		{loopback, "rebound.example", refused},
		{loopback, "rebound.example:9002", refused},
		{loopback, "localhost.rebound.example", refused},
		{loopback, "127.0.0.1.rebound.example", refused},
		{loopback, "10.0.0.5", refused}, // nobody can mean a loopback address by it
		{loopback, "0.0.0.0", refused},
		{loopback, "sluice.edge.svc", refused},
		{more, "Sluice.Edge.Svc:9002", 200},
		{more, "extauthz", 200},
		{more, "other.edge.svc", refused},
		{all, "anything.example", 200},
		{socket, "anything.example", 200},
	} {
		for _, path := range []string{"/healthz", "/metrics", "/debug/pprof/", "/nothing"} {
			got, body := lookup{host: tt.host, path: path}.ask(t, tt.client)
			if (got == refused) != (tt.want == refused) {
				t.Errorf("GET %s of %s = %d %s, want refused %v", path, tt.host, got, body, tt.want == refused)
			}
		}
	}
}

// Where the port is open to a network, whoever asks for an address means it:
// no name of a page leads to a request for an address.
func TestHostRuleBeyondLoopback(t *testing.T) {
	t.Parallel()
	h := admin.Handler(options(admin.Readiness{Ready: true}))
	at := &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 9002}
	outside := serveHandler(t, func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(at))))
	})
	for host, want := range map[string]int{
		"10.1.2.3:9002": 200, "192.0.2.1": 200, "[2001:db8::1]:9002": 200, "localhost": 200, "127.0.0.1": 200,
		"rebound.example": 421, "sluice": 421,
	} {
		if got, body := (lookup{host: host, path: "/metrics"}).ask(t, outside); got != want {
			t.Errorf("GET /metrics of %s = %d %s, want %d", host, got, body, want)
		}
	}
}

func serveHandler(t *testing.T, h http.HandlerFunc) *http.Client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h} //nolint:gosec // a test's own
	go s.Serve(l)                 //nolint:errcheck // it ends with the test
	t.Cleanup(func() { s.Close() })
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", l.Addr().String())
	}}}
}

// A page of another site gets nothing, and changes nothing, by the browser of
// somebody who may.
func TestForeignPages(t *testing.T) {
	t.Parallel()
	c := serve(t, "tcp", "127.0.0.1:0", options(admin.Readiness{Ready: true}))
	for _, tt := range []struct {
		header map[string]string
		want   int
	}{
		{nil, 200},
		{map[string]string{"Sec-Fetch-Site": "none"}, 200},
		{map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost:9002"}, 200},
		{map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		{map[string]string{"Origin": "http://evil.example"}, 403},
		{map[string]string{"Origin": "http://localhost:9003"}, 403},
		{map[string]string{"Origin": "null"}, 403},
	} {
		if got, body := (lookup{host: "localhost:9002", path: "/healthz", header: tt.header}).ask(t, c); got != tt.want {
			t.Errorf("GET /healthz with %v = %d %s, want %d", tt.header, got, body, tt.want)
		}
	}
}

// With a token set, all but what probes and Prometheus ask for needs it. A
// token that cannot be read is nobody's.
func TestToken(t *testing.T) {
	t.Parallel()
	const token = "a-token-of-the-test"
	guarded := options(admin.Readiness{Ready: true})
	guarded.Explain = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	open := serve(t, "tcp", "127.0.0.1:0", guarded)
	guarded.Token = func() ([]byte, error) { return []byte(token), nil }
	c := serve(t, "tcp", "127.0.0.1:0", guarded)
	guarded.Token = func() ([]byte, error) { return nil, errors.New("no such file") }
	lost := serve(t, "tcp", "127.0.0.1:0", guarded)
	for _, tt := range []struct {
		client              *http.Client
		method, path, given string
		want                int
	}{
		{open, "POST", "/explain", "", 200},
		{open, "GET", "/debug/pprof/", "", 200},
		{c, "GET", "/", "", 200},
		{c, "GET", "/healthz", "", 200},
		{c, "GET", "/readyz", "", 200},
		{c, "GET", "/metrics", "", 200},
		{c, "POST", "/explain", "", 401},
		{c, "POST", "/explain", "Bearer " + token, 200},
		{c, "POST", "/explain", "bearer  " + token, 200},
		{c, "POST", "/explain", "Bearer " + token + "x", 401},
		{c, "POST", "/explain", "Bearer " + token[:5], 401},
		{c, "POST", "/explain", "Bearer", 401},
		{c, "POST", "/explain", token, 401},
		{c, "POST", "/explain", "Basic " + token, 401},
		{c, "GET", "/debug/pprof/", "", 401},
		{c, "GET", "/debug/pprof/", "Bearer " + token, 200},
		{c, "GET", "//debug/pprof/", "", 401},
		{c, "GET", "/metrics/../debug/pprof/", "", 401},
		{c, "GET", "/nothing", "", 401},
		{lost, "POST", "/explain", "Bearer ", 401},
		{lost, "GET", "/metrics", "", 200},
	} {
		header := map[string]string{}
		if tt.given != "" {
			header["Authorization"] = tt.given
		}
		got, body := lookup{method: tt.method, host: "localhost", path: tt.path, header: header}.ask(t, tt.client)
		if got != tt.want || strings.Contains(body, token) {
			t.Errorf("%s %s with %q = %d %s, want %d", tt.method, tt.path, tt.given, got, body, tt.want)
		}
	}
}

// Nothing that changes anything is served: with or without a token, what is
// not read or explained is not there.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	c := serve(t, "tcp", "127.0.0.1:0", options(admin.Readiness{Ready: true}))
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		for _, path := range []string{"/", "/healthz", "/readyz", "/metrics", "/debug/pprof/", "/debug/pprof/profile", "/nothing"} {
			if got, _ := (lookup{method: method, host: "localhost", path: path}).ask(t, c); got != 404 && got != 405 {
				t.Errorf("%s %s = %d, want 404 or 405", method, path, got)
			}
		}
	}
}

func TestPprofIsOff(t *testing.T) {
	t.Parallel()
	o := options(admin.Readiness{Ready: true})
	o.Pprof = false
	c := serve(t, "tcp", "127.0.0.1:0", o)
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/profile?seconds=1", "/debug/pprof/symbol"} {
		if got, _ := (lookup{host: "localhost", path: path}).ask(t, c); got != 404 {
			t.Errorf("GET %s = %d, want 404", path, got)
		}
	}
}

// A body is read so far and no further.
func TestBodyLimit(t *testing.T) {
	t.Parallel()
	o := options(admin.Readiness{Ready: true})
	type reading struct {
		bytes int64
		err   error
	}
	readings := make(chan reading, 1)
	o.Explain = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		readings <- reading{n, err}
	})
	c := serve(t, "tcp", "127.0.0.1:0", o)
	resp, err := c.Post("http://localhost/explain", "text/plain", strings.NewReader(strings.Repeat("x", 2<<20)))
	if err == nil { // it may not get as far as the answer
		resp.Body.Close()
	}
	if got := <-readings; got.err == nil || got.bytes > 1<<20 {
		t.Errorf("a body of 2 MiB: %d bytes were read, error %v, want 1 MiB and an error", got.bytes, got.err)
	}
}
