//go:build compose

package compose_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Whatever replica is asked, so many requests pass and no more.
func TestLimits(t *testing.T) {
	for _, tt := range []struct {
		name         string
		method, path string
		from         func(i int) caller
		want         tally
	}{
		{
			"by address", "GET", "/hello", func(int) caller { return caller{address: "198.51.100.1"} },
			tally{200: 5, 429: 55},
		},
		{
			"two addresses, each its own", "GET", "/hello",
			func(i int) caller { return caller{address: fmt.Sprintf("198.51.100.%d", 2+i%2)} },
			tally{200: 10, 429: 50},
		},
		{
			"by user, from wherever", "GET", "/account",
			func(i int) caller { return caller{address: fmt.Sprintf("198.51.101.%d", i), user: "alice"} },
			tally{200: 10, 429: 50},
		},
		{
			"of nobody", "GET", "/account", func(int) caller { return caller{address: "198.51.100.4"} },
			tally{401: 60},
		},
		{
			"by address and user, by two limits", "GET", "/search",
			func(i int) caller { return caller{address: fmt.Sprintf("198.51.100.%d", 5+i%2), user: "bob"} },
			tally{200: 8, 429: 52},
		},
		{
			"by method", "GET", "/login", func(int) caller { return caller{address: "198.51.100.7"} },
			tally{200: 60},
		},
		{
			"exempt", "GET", "/healthz", func(int) caller { return caller{address: "198.51.100.1"} },
			tally{200: 60},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, many(t, 60, tt.method, tt.path, tt.from)); diff != "" {
				t.Errorf("60 × %s %s: answers by status (-want +got):\n%s", tt.method, tt.path, diff)
			}
		})
	}
}

// Both replicas decide, and what one has spent the other knows.
func TestReplicasShare(t *testing.T) {
	before := decided(t)
	got := many(t, 100, "POST", "/login", func(int) caller { return caller{address: "198.51.100.10"} })
	if diff := cmp.Diff(tally{200: 3, 429: 97}, got); diff != "" {
		t.Errorf("100 × POST /login: answers by status (-want +got):\n%s", diff)
	}
	after := decided(t)
	if len(after) != 2 || after[0] == 0 || after[1] == 0 || sum(after)-sum(before) != 100 {
		t.Errorf("decisions about logins by replica = %v before, %v after, want 100 more, of two", before, after)
	}
}

// decided is how many decisions each replica has made about logins up to now.
func decided(t *testing.T) (all []int) {
	t.Helper()
	now := time.Now().Unix()
	eventually(t, "Prometheus has read both replicas since", func() bool {
		return cmp.Equal(query(t, fmt.Sprintf(`count(timestamp(up{job="sluice"}) > %d)`, now+1)), []string{"2"})
	})
	for _, v := range query(t, `sum by (instance) (sluice_decisions_total{rule="login"})`) {
		n, err := strconv.Atoi(v)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	return all
}

func sum(all []int) (n int) {
	for _, v := range all {
		n += v
	}
	return n
}

func TestDenialHeaders(t *testing.T) {
	from := caller{address: "198.51.100.20", user: "carol"}
	for i, want := range []string{"3", "2", "1", "0"} {
		if a := from.ask(t, "GET", "/search?q=x"); a.status != 200 || a.header.Get("X-RateLimit-Remaining") != want || a.header.Get("X-RateLimit-Limit") != "4" {
			t.Errorf("GET /search %d = %d, %v, want 200, a limit of 4 and %s remaining", i, a.status, a.header, want)
		}
	}
	a := from.ask(t, "GET", "/search?q=x")
	wait, err := strconv.Atoi(a.header.Get("Retry-After"))
	if a.status != 429 || err != nil || wait < 3000 || wait > 3600 {
		t.Errorf("a denial = %d, Retry-After %q, want 429 and nearly an hour", a.status, a.header.Get("Retry-After"))
	}
	for name, want := range map[string]string{
		"X-RateLimit-Limit": "4", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": strconv.Itoa(wait),
		"X-Envoy-Ratelimited": "true", "Content-Type": "application/json",
	} {
		if got := a.header.Values(name); len(got) != 1 || got[0] != want {
			t.Errorf("a denial has %s %q, want one, %q", name, got, want)
		}
	}
	if want := fmt.Sprintf(`{"error":"too many searches","retry_after":%d}`, wait); a.body != want {
		t.Errorf("a denial's body = %s, want %s", a.body, want)
	}
}

// Only who comes by the gateway is believed; a neighbour is who it is, however
// many addresses it claims to have.
func TestNeighbourIsNotBelieved(t *testing.T) {
	envoy := up.engine(t, "inspect", "--format", fmt.Sprintf(`{{(index .NetworkSettings.Networks "%s_inside").IPAddress}}`, project), up.containers(t, "envoy")[0])
	upstream := up.containers(t, "upstream")[0]
	for i, want := range []string{"200", "200", "200", "200", "200", "429", "429"} {
		out, err := up.docker("exec", upstream, "wget", "-q", "-O", "-", "--header", fmt.Sprintf("X-Forwarded-For: 198.51.102.%d", i), "http://"+envoy+":10000/hello")
		got := out
		if err != nil {
			got = err.Error()
		}
		if passed := strings.Contains(out, "upstream: GET /hello"); passed != (want == "200") || !passed && !strings.Contains(got, want) {
			t.Errorf("request %d of one neighbour, each with another address = %s, want %s", i, got, want)
		}
	}
}
