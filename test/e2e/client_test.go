package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"
)

// A client asks an Envoy from one address.
type client struct {
	http.Client
	url  string
	host string // that it asks for; "" is the address
}

// An answer is what a client got.
type answer struct {
	status int
	header http.Header
	body   string
}

// from returns a client at address that asks the listener on the published
// port. The address must not be 127.0.0.1, which Envoy takes for itself.
func (y *system) from(address string, port int) *client {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	dial := func(ctx context.Context, _, target string) (net.Conn, error) {
		return dialer.DialContext(ctx, "tcp4", target)
	}
	return &client{
		Client: http.Client{Transport: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 16}, Timeout: 2 * patience},
		url:    fmt.Sprintf("http://127.0.0.1:%d", y.ports[port]),
	}
}

// ask sends one request with header lines, each a name and a value.
func (c *client) ask(ctx context.Context, method, path string, header ...string) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, nil)
	if err != nil {
		return answer{}, err
	}
	r.Host = c.host
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	resp, err := c.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(body)}, err
}

// one is ask, for a test that cannot go on without the answer.
func (c *client) one(t *testing.T, method, path string, header ...string) answer {
	t.Helper()
	a, err := c.ask(t.Context(), method, path, header...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// admits sends two requests more than n, wants the first n to pass and the
// rest to be denied, and returns all answers.
func (c *client) admits(t *testing.T, n int, method, path string, header ...string) []answer {
	t.Helper()
	answers := make([]answer, n+2)
	for i := range answers {
		answers[i] = c.one(t, method, path, header...)
		want := http.StatusOK
		if i >= n {
			want = http.StatusTooManyRequests
		}
		if got := answers[i].status; got != want {
			t.Errorf("%s %s, request %d: %d, want %d; headers %v", method, path, i+1, got, want, answers[i].header)
		}
	}
	return answers
}

// number returns a header's number.
func (a answer) number(t *testing.T, header string) int {
	t.Helper()
	n, err := strconv.Atoi(a.header.Get(header))
	if err != nil {
		t.Fatalf("%s: %q, want a number; the answer was %d %v", header, a.header.Get(header), a.status, a.header)
	}
	return n
}

// wants checks headers, each a name and a value; "" is no such header.
func (a answer) wants(t *testing.T, header ...string) {
	t.Helper()
	for i := 0; i+1 < len(header); i += 2 {
		if got := a.header.Get(header[i]); got != header[i+1] {
			t.Errorf("%d: %s: %q, want %q", a.status, header[i], got, header[i+1])
		}
	}
}

// obey waits as long as a denial says: Retry-After, which must be from 1 to
// most seconds. Whoever waits so long, alone, is let through.
func (a answer) obey(t *testing.T, most int) {
	t.Helper()
	wait := a.number(t, "Retry-After")
	if wait < 1 || wait > most {
		t.Fatalf("Retry-After: %d, want 1 to %d", wait, most)
	}
	time.Sleep(time.Duration(wait) * time.Second)
}
