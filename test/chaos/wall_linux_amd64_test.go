package chaos_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/test/servers"
)

// By a clock that is an hour ahead greedy would have a token more. Of soon there
// is one each second.
const wallPolicy = `domain: edge
rules:
  - {name: greedy, match: {path: /greedy}, per: [ip], limits: [{rate: 24/1d}], on_error: local}
  - {name: interval, match: {path: /interval}, per: [ip], limits: [{rate: 24/1d, refill: interval}]}
  - {name: sliding, match: {path: /sliding}, per: [ip], limits: [{rate: 24/1d, refill: sliding}]}
  - {name: calendar, match: {path: /calendar}, per: [ip], limits: [{rate: 24/1y, refill: aligned, zone: UTC}]}
  - {name: soon, match: {path: /soon}, per: [ip], limits: [{rate: 1/1s, refill: interval}]}
`

const hour = time.Hour

// steps are what a clock is off by, one after the other.
var steps = []time.Duration{hour, 0, -hour, 0, -hour, hour, 0}

// TestClockOfProcess sets the clock of extauthz, with its buckets in Redis and
// in its own memory. Neither counts by it.
func TestClockOfProcess(t *testing.T) {
	t.Parallel()
	for _, store := range []string{"redis", "memory"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			s := &clocks{}
			if store == "redis" {
				s = startClocks(t)
			} else {
				s.start(t)
			}
			clock := wallOf(t, s.pid)
			s.begin(t)
			for _, to := range steps {
				clock.set(t, to)
				s.wantProcessOff(t, to)
				s.check(t, fmt.Sprintf("the clock of extauthz is set to %v", to))
			}
		})
	}
}

// TestClocksApart has Redis refuse scripts while its clock and that of extauthz
// are an hour or two apart. Local goes on from what was left, and Redis is charged with that.
func TestClocksApart(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{hour, -hour} {
		t.Run(by.String(), func(t *testing.T) {
			t.Parallel()
			s := startClocks(t)
			redis, process := wallOf(t, s.serverPID(t)), wallOf(t, s.pid)
			redis.set(t, by)
			for range 10 {
				s.want(t, "/greedy", "198.51.100.1", 200)
			}
			s.server.Do(t, "ACL", "SETUSER", "default", "-@scripting")
			process.set(t, -by) // two apart, and in the midst of it
			if passed, wait := s.drain(t, "/greedy"); passed != 14 || wait > hour {
				t.Errorf("%d passed while Redis refuses, then wait %v, want the 14 that were left, and an hour at most", passed, wait)
			}
			s.server.Do(t, "ACL", "SETUSER", "default", "+@all")
			eventually(t, "what was spent is charged to Redis", func() bool {
				m := scrape(t, s.admin)
				return m[`sluice_store_breaker_open{store="redis"}`] == 0 && m["sluice_local_unsettled_buckets"] == 0 && m["sluice_local_settled_tokens_total"] == 14
			})
			if passed, wait := s.drain(t, "/greedy"); passed != 0 || wait > hour {
				t.Errorf("%d passed when Redis was back, then wait %v, want none, and an hour at most", passed, wait)
			}
		})
	}
}

// clocks are extauthz and, perhaps, its Redis.
type clocks struct {
	*asker
	server *servers.Server
	pid    int
	admin  string
}

func startClocks(t *testing.T) *clocks {
	t.Helper()
	s := &clocks{server: servers.Start(t, servers.Redis, servers.Options{})}
	s.start(t, "--redis-url", s.server.URL(), "--store-deadline", deadline.String(), "--deny-cache", "0")
	return s
}

func (s *clocks) start(t *testing.T, args ...string) {
	t.Helper()
	e := serve(t, append(args, "--policy", policyOf(t, wallPolicy))...)
	s.asker, s.pid, s.admin = newAsker(t, e.GRPC), e.PID(), e.Admin
}

// serverPID returns the process of Redis.
func (s *clocks) serverPID(t *testing.T) int {
	t.Helper()
	_, rest, _ := strings.Cut(s.server.Do(t, "INFO", "server"), "process_id:")
	pid, err := strconv.Atoi(strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0]))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// begin spends all there is.
func (s *clocks) begin(t *testing.T) {
	t.Helper()
	for _, path := range []string{"/greedy", "/interval", "/sliding", "/calendar"} {
		if passed, _ := s.drain(t, path); passed != 24 {
			t.Fatalf("%d passed of %s, want 24", passed, path)
		}
	}
	s.drain(t, "/soon")
}

// check wants that nobody has a token more, and that a wait is true.
func (s *clocks) check(t *testing.T, when string) {
	t.Helper()
	for path, most := range map[string]time.Duration{
		"/greedy": hour, "/interval": 24 * hour, "/sliding": 24 * hour, "/calendar": 366 * 24 * hour,
	} {
		if passed, wait := s.drain(t, path); passed != 0 || wait < time.Second || wait > most {
			t.Errorf("%s: %d passed of %s, then wait %v, want none, and %v at most", when, passed, path, wait, most)
		}
	}
	_, wait := s.drain(t, "/soon")
	if wait != time.Second {
		t.Fatalf("%s: wait %v for /soon, want 1s", when, wait)
	}
	time.Sleep(wait) // who waits so long is let through
	if status, _ := s.ask(t, "/soon", "198.51.100.1"); status != 200 {
		t.Errorf("%s: %d for /soon after the wait told, want 200", when, status)
	}
}

// wantProcessOff wants that extauthz says so much more than we do.
func (s *clocks) wantProcessOff(t *testing.T, want time.Duration) {
	t.Helper()
	resp, err := http.Get("http://" + s.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	said, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		t.Fatal(err)
	}
	wantOff(t, said, want)
}

func wantOff(t *testing.T, clock time.Time, want time.Duration) {
	t.Helper()
	if off := time.Until(clock).Round(10 * time.Minute); off != want {
		t.Fatalf("the clock is off by %v, want %v", off, want)
	}
}
