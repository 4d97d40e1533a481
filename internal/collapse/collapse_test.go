package collapse_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/internal/collapse"
	"github.com/sluice-mesh/sluice/pkg/identity"
	"github.com/sluice-mesh/sluice/pkg/limiter/doortest"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// A street is a Watch with requests to look at, at a clock that is moved.
type street struct {
	watch  *collapse.Watch
	set    *policy.Set
	clock  *doortest.Clock
	log    bytes.Buffer
	counts map[string]int
}

func newStreet(t testing.TB, yaml string) *street {
	t.Helper()
	s := &street{set: doortest.Load(t, yaml), clock: doortest.NewClock(), counts: map[string]int{}}
	s.watch = collapse.New(collapse.Options{
		Log:   slog.New(slog.NewTextHandler(&s.log, nil)),
		Count: func(domain, rule, reason string) { s.counts[domain+"/"+rule+"/"+reason]++ },
		Now:   func() time.Time { return s.clock.Now },
	})
	s.watch.Use(s.set)
	return s
}

// send has a request come from peer with an x-forwarded-for, "" for none.
func (s *street) send(peer, forwarded string) {
	a := &identity.Attributes{Method: "GET", Path: "/x", Source: netip.MustParseAddr(peer), Headers: map[string]string{}}
	if forwarded != "" {
		a.Headers["x-forwarded-for"] = forwarded
	}
	p := s.set.ForRequests("")
	id := p.Edge.Identify(a)
	s.watch.Identified(p, a, id)
	s.watch.Decided(p.ForRequest(policy.Request{Attributes: a, Identity: id}).Applied)
}

func (s *street) lines() int { return strings.Count(s.log.String(), "\n") }

const (
	byIP     = "domain: edge\nrules:\n  - {name: all, per: [ip], limits: [{rate: 9/1m}]}\n"
	trusting = "domain: edge\ntrust: {proxies: [10.0.0.0/8]}\nrules:\n  - {name: all, per: [ip], limits: [{rate: 9/1m}]}\n"
)

func client(i int) string { return fmt.Sprintf("203.0.%d.%d", i/250, i%250) }

func TestUntrusted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		yaml string
		send func(s *street, i int)
		want int // findings of 1000 requests
	}{
		{"B003: a proxy that trust does not name", byIP, func(s *street, i int) { s.send("10.0.0.5", client(i)) }, 1},
		{"it adds to what came", byIP, func(s *street, i int) { s.send("10.0.0.5", "1.1.1.1, "+client(i)) }, 1},
		{"Envoy adds the peer", byIP, func(s *street, i int) { s.send("10.0.0.5", client(i)+",10.0.0.5") }, 1},
		{"Envoy adds clients", byIP, func(s *street, i int) { s.send(client(i), client(i)) }, 0},
		{"what came before it is not its word", byIP, func(s *street, i int) { s.send("10.0.0.5", client(i)+", 1.1.1.1") }, 0},
		{"a proxy that trust names", trusting, func(s *street, i int) { s.send("10.0.0.5", client(i)) }, 0},
		{"another one", trusting, func(s *street, i int) { s.send("192.168.0.5", client(i)) }, 1},
		{"a client with few addresses", byIP, func(s *street, i int) { s.send("10.0.0.5", client(i%31)) }, 0},
		{"clients with one each", byIP, func(s *street, i int) { s.send(client(i), client(i)) }, 0},
		{"no header", byIP, func(s *street, i int) { s.send(client(i), "") }, 0},
		{"a proxy among clients that write", byIP, func(s *street, i int) { s.send(client(i), "1.1.1.1"); s.send("10.0.0.5", client(i)) }, 1},
	} {
		s := newStreet(t, tt.yaml)
		for i := range 1000 {
			tt.send(s, i)
		}
		if got := s.counts["edge//untrusted_proxy"]; got != tt.want || s.lines() != tt.want {
			t.Errorf("%s: found %d times, in %d lines, want %d:\n%s", tt.name, got, s.lines(), tt.want, &s.log)
		}
	}
}

const manyRules = `domain: edge
identities:
  user: {header: x-user, believe: always, missing: share}
rules:
  - {name: by-ip, per: [ip], limits: [{rate: 9/1m}]}
  - {name: by-user, per: [user], limits: [{rate: 9/1m}]}
  - {name: by-path, per: [path], limits: [{rate: 9/1m}]}
  - {name: one-bucket, limits: [{rate: 9/1m}]}
  - {name: free, per: [ip], unlimited: true}
`

func TestOneKey(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		peer func(i int) string
		want map[string]int
	}{
		{"one address", func(int) string { return "10.0.0.5" }, map[string]int{"edge/by-ip/one_key": 1, "edge/by-user/one_key": 1}},
		{"one address of many", func(i int) string { return []string{"10.0.0.5", client(i)}[min(i%30/29, 1)] }, map[string]int{"edge/by-ip/one_key": 1, "edge/by-user/one_key": 1}},
		{"nine in ten", func(i int) string { return []string{"10.0.0.5", client(i)}[min(i%10/9, 1)] }, map[string]int{"edge/by-user/one_key": 1}},
		{"two in turns", func(i int) string { return client(i % 2) }, map[string]int{"edge/by-user/one_key": 1}},
		{"many", client, map[string]int{"edge/by-user/one_key": 1}},
	} {
		s := newStreet(t, manyRules)
		for i := range 300 {
			s.send(tt.peer(i), "")
		}
		if len(s.counts) > 0 {
			t.Errorf("%s: found %v within a minute, want nothing", tt.name, s.counts)
		}
		s.clock.Now = s.clock.Now.Add(time.Minute)
		for i := range 10 {
			s.send(tt.peer(i), "")
		}
		if diff := cmp.Diff(tt.want, s.counts); diff != "" {
			t.Errorf("%s: found -want +got:\n%s", tt.name, diff)
		}
	}
}

// Few requests say nothing, and those of long ago no more.
func TestOneKeyOfFew(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pause time.Duration // between requests
		want  int
	}{
		{time.Second, 1}, {5 * time.Second, 1}, {7 * time.Second, 0}, {time.Hour, 0},
	} {
		s := newStreet(t, byIP)
		for range 101 {
			s.send("10.0.0.5", "")
			s.clock.Now = s.clock.Now.Add(tt.pause)
		}
		if got := s.counts["edge/all/one_key"]; got != tt.want {
			t.Errorf("101 requests, one each %v: found %d times, want %d", tt.pause, got, tt.want)
		}
	}
}

// However much there is to say, it is a line a minute at most, and one an hour
// of the same rule.
func TestLogsSeldom(t *testing.T) {
	t.Parallel()
	s := newStreet(t, manyRules)
	for range 2 * 60 * 60 { // two hours, four requests a second
		s.clock.Now = s.clock.Now.Add(time.Second)
		for i := range 4 {
			s.send("10.0.0.5", client(i))
		}
	}
	if got := s.lines(); got < 4 || got > 6 {
		t.Errorf("two hours give %d lines, want one an hour for each of two rules:\n%s", got, &s.log)
	}
	if got := s.counts["edge/by-ip/one_key"]; got < 100 || got > 120 {
		t.Errorf("two hours are found %d times, want nearly once a minute", got)
	}
}

// A line says the rule and the setting, and nothing of a client's.
func TestLogHolds(t *testing.T) {
	t.Parallel()
	s := newStreet(t, byIP)
	for i := range 200 {
		s.send("10.0.0.5", client(i))
		s.clock.Now = s.clock.Now.Add(time.Second)
	}
	got := s.log.String()
	for _, want := range []string{"domain=edge", "trust.proxies", "rule=all", "per=ip", "trust: proxies, hops or stamp"} {
		if !strings.Contains(got, want) {
			t.Errorf("the log is %s, want %q in it", got, want)
		}
	}
	if strings.Contains(got, "10.0.0") || strings.Contains(got, "203.0") {
		t.Errorf("the log is %s, want no address in it", got)
	}
}

// Rules that are replaced are looked at no more.
func TestUse(t *testing.T) {
	t.Parallel()
	s := newStreet(t, byIP)
	s.watch.Use(doortest.Load(t, strings.Replace(byIP, "all", "other", 1)))
	for range 300 {
		s.send("10.0.0.5", "")
		s.clock.Now = s.clock.Now.Add(time.Second)
	}
	if len(s.counts) > 0 {
		t.Errorf("found %v of a rule that is gone, want nothing", s.counts)
	}
	s.watch.Use(nil)
	s.send("10.0.0.5", "")
}

func TestAllocatesNothing(t *testing.T) {
	s := newStreet(t, manyRules)
	p := s.set.ForRequests("")
	a := &identity.Attributes{Source: netip.MustParseAddr("10.0.0.5"), Headers: map[string]string{"x-forwarded-for": "1.1.1.1"}}
	id := p.Edge.Identify(a)
	applied := p.ForRequest(policy.Request{Attributes: a, Identity: id}).Applied
	if got := testing.AllocsPerRun(1000, func() { s.watch.Decided(applied) }); got > 0 {
		t.Errorf("Decided() allocates %v times, want never", got)
	}
	if got := testing.AllocsPerRun(1000, func() { s.watch.Identified(p, a, id) }); got > 0 {
		t.Errorf("Identified() allocates %v times, want never", got)
	}
}

func BenchmarkWatch(b *testing.B) {
	s := newStreet(b, manyRules)
	p := s.set.ForRequests("")
	a := &identity.Attributes{Source: netip.MustParseAddr("10.0.0.5"), Headers: map[string]string{"x-forwarded-for": "1.1.1.1"}}
	id := p.Edge.Identify(a)
	applied := p.ForRequest(policy.Request{Attributes: a, Identity: id}).Applied
	for b.Loop() {
		s.watch.Identified(p, a, id)
		s.watch.Decided(applied)
	}
}
