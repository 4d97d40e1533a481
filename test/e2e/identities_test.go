package e2e_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

func TestIdentities(t *testing.T) {
	t.Parallel()
	onEachStore(t, "identities", func(t *testing.T, y *system) {
		t.Run("group", func(t *testing.T) { // ends when all of them have
			for name, test := range map[string]func(*testing.T, *system){
				"anonymous": anonymous, "authenticated": authenticated, "sensitive": sensitive,
				"untrusted": untrusted, "trusted": trusted,
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					test(t, y)
				})
			}
		})
	}, edgePort, proxiedPort)
}

func anonymous(t *testing.T, y *system) {
	const path = "/api/anonymous/x"
	y.from(ben, edgePort).admits(t, 20, http.MethodGet, path)
	c := y.from(anna, edgePort)
	first := c.one(t, http.MethodGet, path)
	first.wants(t, "X-RateLimit-Limit", "20", "X-RateLimit-Remaining", "19", "Retry-After", "")
	if reset := first.number(t, "X-RateLimit-Reset"); reset != 10 {
		t.Errorf("X-RateLimit-Reset: %d, want 10", reset)
	}

	// The first of 100 left at some moment before this one, and one comes
	// back every 6 seconds since.
	after := time.Now()
	d := c.drain(t, path, 20, 100)
	least, most := 99+int(d.asked.Sub(after)/(6*time.Second)), 99+int(time.Since(y.born)/(6*time.Second))
	if d.admitted < least || d.admitted > most {
		t.Errorf("after the first request %d more passed, want %d to %d", d.admitted, least, most)
	}
	d.denial.obey(t, 6)
	if got := c.one(t, http.MethodGet, path).status; got != http.StatusOK {
		t.Errorf("after Retry-After: %d, want %d", got, http.StatusOK)
	}
}

func authenticated(t *testing.T, y *system) {
	const path = "/api/authenticated/x"
	c := y.from(anna, edgePort)
	if got := c.one(t, http.MethodGet, path).status; got != http.StatusUnauthorized {
		t.Errorf("without X-User-ID: %d, want %d", got, http.StatusUnauthorized)
	}
	c.admits(t, 50, http.MethodGet, path, "X-User-ID", "u1")
	elsewhere := y.from(ben, edgePort).one(t, http.MethodGet, path, "X-User-ID", "u1")
	if got := elsewhere.status; got != http.StatusTooManyRequests {
		t.Errorf("the same user from another address: %d, want %d", got, http.StatusTooManyRequests)
	}
	if d := c.drain(t, path, 50, 200, "X-User-ID", "u2"); d.admitted != 200 {
		t.Errorf("within a minute %d passed, want 200", d.admitted)
	}
}

func sensitive(t *testing.T, y *system) {
	const path = "/api/sensitive/x"
	c := y.from(anna, edgePort)
	if got := c.one(t, http.MethodGet, path).status; got != http.StatusBadRequest {
		t.Errorf("without X-User-ID: %d, want %d", got, http.StatusBadRequest)
	}
	c.admits(t, 10, http.MethodGet, path, "X-User-ID", "u1")
	y.from(ben, edgePort).admits(t, 10, http.MethodGet, path, "X-User-ID", "u1")
	if d := c.drain(t, path, 10, 50, "X-User-ID", "u2"); d.admitted != 50 {
		t.Errorf("within a minute %d passed, want 50", d.admitted)
	}
}

// What a client writes about its own address changes nothing.
func untrusted(t *testing.T, y *system) {
	for i, port := range []int{edgePort, proxiedPort} {
		c := y.from(fmt.Sprintf("127.0.1.%d", i+1), port)
		for n := range 22 {
			forged := fmt.Sprintf("203.0.113.%d", 100+n)
			a := c.one(t, http.MethodGet, "/api/anonymous/x", "X-Forwarded-For", forged, "X-Real-IP", forged)
			want := http.StatusOK
			if n >= 20 {
				want = http.StatusTooManyRequests
			}
			if a.status != want {
				t.Errorf("port %d, request %d from one address: %d, want %d", port, n+1, a.status, want)
			}
		}
	}
}

// What a trusted proxy says of an address is believed, and no more.
func trusted(t *testing.T, y *system) {
	const path = "/api/anonymous/x"
	c := y.from(proxy, proxiedPort)
	c.admits(t, 20, http.MethodGet, path, "X-Forwarded-For", "203.0.113.7")
	c.admits(t, 20, http.MethodGet, path, "X-Forwarded-For", "203.0.113.8")
	c.admits(t, 20, http.MethodGet, path, "X-Real-IP", "203.0.113.9")
	for _, header := range [][]string{
		{"X-Forwarded-For", "198.51.100.1, 203.0.113.7"}, // the client's own word stands left of the proxy's
		{"X-Forwarded-For", "203.0.113.9"},               // the address that X-Real-IP said
		{"X-Forwarded-For", "203.0.113.8", "X-Real-IP", "198.51.100.1"},
	} {
		a := c.one(t, http.MethodGet, path, header...)
		if a.status != http.StatusTooManyRequests {
			t.Errorf("with %q: %d, want %d: that address has spent its tokens", header, a.status, http.StatusTooManyRequests)
		}
	}
}

// A drained bucket is one whose longer limit has denied a request.
type drained struct {
	admitted int
	denial   answer
	asked    time.Time // just before that request
}

// drain asks until the limit with the burst long denies a request, and waits
// out each denial by the shorter limit, which lets burst short through at once
// and 10 seconds later again.
func (c *client) drain(t *testing.T, path string, short, long int, header ...string) drained {
	t.Helper()
	var d drained
	for {
		d.asked = time.Now()
		a := c.one(t, http.MethodGet, path, header...)
		switch limit := a.number(t, "X-RateLimit-Limit"); {
		case a.status == http.StatusOK:
			d.admitted++
		case limit == long:
			d.denial = a
			return d
		case limit == short:
			a.obey(t, 10)
		default:
			t.Fatalf("%d by a limit of %d, want %d or %d", a.status, limit, short, long)
		}
		if d.admitted > 2*long {
			t.Fatalf("%d passed, want about %d", d.admitted, long)
		}
	}
}
