package policy_test

import (
	"fmt"
	"testing"

	"github.com/sluice-mesh/sluice/pkg/policy"
)

// many is a policy of n rules of which three apply to /api/v1/users/42.
func many(tb testing.TB, n int) *policy.Policy {
	tb.Helper()
	s := []policy.RuleSpec{
		{Name: "api", Match: &policy.MatchSpec{Path: "/api/*"}, Per: []string{"ip"}},
		{Name: "users", Match: &policy.MatchSpec{Path: "/api/v1/users/{id}", Methods: []string{"GET"}}, Per: []string{"ip", "user"}},
		{Name: "all"},
	}
	for i := len(s); i < n; i++ {
		s = append(s, policy.RuleSpec{Name: fmt.Sprint("r", i), Match: &policy.MatchSpec{Path: fmt.Sprintf("/api/v1/other%d/*", i)}, Per: []string{"user"}})
	}
	return compile(tb, callers(s...))
}

func request(p *policy.Policy) policy.Request {
	c := call{path: "/api/v1/users/42?page=1", host: "example.com", peer: "203.0.113.7", headers: header("x-user", "alice")}
	a := c.attributes()
	return policy.Request{Attributes: a, Identity: p.Edge.Identify(a)}
}

// What is allocated is the list of what applies, a key for each, and the text
// of the address.
func TestForRequestAllocates(t *testing.T) {
	p := many(t, 50)
	r := request(p)
	if got := len(p.ForRequest(r).Applied); got != 3 {
		t.Fatalf("ForRequest(%v) applies %d rules, want 3", r, got)
	}
	if got := testing.AllocsPerRun(100, func() { p.ForRequest(r) }); got > 5 {
		t.Errorf("allocations of ForRequest with 3 of 50 rules = %v, want at most 5", got)
	}
	r.Attributes.Path = "/elsewhere"
	p = compile(t, rules(policy.RuleSpec{Name: "r", Match: &policy.MatchSpec{Path: "/api/*"}}))
	if got := testing.AllocsPerRun(100, func() { p.ForRequest(r) }); got != 0 {
		t.Errorf("allocations of ForRequest where nothing applies = %v, want 0", got)
	}
}

// What expressions take beyond that is what they are made of: their values are
// found when they are asked for, and once.
func TestForRequestAllocatesForExpressions(t *testing.T) {
	c := call{path: "/a", headers: header("x-a", "1"), metadata: claims("u")}
	allocations := func(m policy.MatchSpec) float64 {
		p := compile(t, rules(policy.RuleSpec{Name: "r", Match: &m}))
		a := c.attributes()
		r := policy.Request{Attributes: a, Identity: p.Edge.Identify(a)}
		if got := len(p.ForRequest(r).Applied); got != 1 {
			t.Fatalf("ForRequest(%v) applies %d rules, want 1", r, got)
		}
		return testing.AllocsPerRun(100, func() { p.ForRequest(r) })
	}
	plain := allocations(policy.MatchSpec{})
	for text, most := range map[string]float64{
		`request.method != "HEAD"`:               3,
		`claims[?"sub"].orValue("") != "nobody"`: 7,
	} {
		if got := allocations(policy.MatchSpec{When: text}) - plain; got > most {
			t.Errorf("allocations of ForRequest when %s = %v more than without, want at most %v", text, got, most)
		}
	}
}

func TestForDescriptorAllocates(t *testing.T) {
	p := compile(t, rules(policy.RuleSpec{Name: "login", Descriptor: entries("generic_key=login", "user")}))
	d := descriptor("generic_key", "login", "user", "alice")
	if got := testing.AllocsPerRun(100, func() { p.ForDescriptor(d) }); got > 2 {
		t.Errorf("allocations of ForDescriptor with one rule = %v, want at most 2", got)
	}
}

func BenchmarkForRequest(b *testing.B) {
	for _, n := range []int{3, 50, 10_000} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			p := many(b, n)
			r := request(p)
			b.ReportAllocs()
			for b.Loop() {
				p.ForRequest(r)
			}
		})
	}
}

func BenchmarkExpression(b *testing.B) {
	for _, text := range []string{
		`true || claims.x`, // none is left of it
		`request.method != "HEAD"`,
		`claims[?"sub"].orValue("") == "u"`,
		`request.path.matches("^/api/v[0-9]+/")`, // watched, since a path has no bound
	} {
		b.Run(text, func(b *testing.B) {
			p := compile(b, rules(policy.RuleSpec{Name: "r", Match: &policy.MatchSpec{When: text}}))
			a := call{path: "/api/v1/users", metadata: claims("u")}.attributes()
			r := policy.Request{Attributes: a, Identity: p.Edge.Identify(a)}
			b.ReportAllocs()
			for b.Loop() {
				p.ForRequest(r)
			}
		})
	}
}

func BenchmarkForDescriptor(b *testing.B) {
	for _, n := range []int{1, 50, 10_000} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			var s []policy.RuleSpec
			for i := range n {
				s = append(s, policy.RuleSpec{Name: fmt.Sprint("r", i), Limits: hourly(1), Descriptor: entries(fmt.Sprint("user=u", i), "remote_address")})
			}
			p := compile(b, rules(s...))
			d := descriptor("user", "u0", "remote_address", "203.0.113.7")
			b.ReportAllocs()
			for b.Loop() {
				p.ForDescriptor(d)
			}
		})
	}
}
