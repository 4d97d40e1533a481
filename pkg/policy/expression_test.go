package policy_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/identity"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// when is a policy of one rule for the requests for which text is true. It
// trusts 10.0.0.0/8 and believes x-key from anybody.
func when(t testing.TB, text string) *policy.Policy {
	t.Helper()
	s := trusting(rules(policy.RuleSpec{Name: "r", Match: &policy.MatchSpec{When: text}}), "10.0.0.0/8")
	s.Identities = []policy.IdentitySpec{{Name: "key", Source: identity.SourceSpec{Header: "X-Key", Always: true}}}
	return compile(t, s)
}

// whole is a request with all that there is to know of one.
func whole() *identity.Attributes {
	return &identity.Attributes{
		Method: "PUT", Path: "/a//b?q=1#f", Host: "Example.com:80", Scheme: "https", Protocol: "HTTP/2", ID: "77", Size: 3000,
		Time:      time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC),
		Headers:   map[string]string{"x-key": "k", "x-user": "u", "referer": "r", "user-agent": "ua", "n": "12"},
		Source:    netip.MustParseAddr("::ffff:192.0.2.1"),
		Principal: "spiffe://a/b",
		Context:   map[string]string{"route": "r1"},
		Metadata: map[string]map[string]any{
			"envoy.filters.http.jwt_authn": {"idp": map[string]any{"plan": "gold", "level": 3.0, "nested": map[string]any{"a": true}, "list": []any{"x"}, "nothing": nil}},
			"my.filter":                    {"k": "v"},
		},
	}
}

// The names are Envoy's, and mean what Envoy's mean.
func TestExpressionNames(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`request.method == "PUT"`,
		`request.path == "/a//b?q=1#f"`,
		`request.url_path == "/a/b"`,
		`request.query == "q=1"`,
		`request.host == "example.com"`,
		`request.scheme == "https"`,
		`request.protocol == "HTTP/2"`,
		`request.id == "77"`,
		`request.size > 2999 && request.size < 3001`,
		`request.time.getFullYear() == 2030 && request.time < timestamp("2031-01-01T00:00:00Z")`,
		`request.headers["x-key"] == "k"`,
		`request.headers.size() == 1`,
		`!("x-user" in request.headers) && !has(request.headers.n)`,
		`request.referer == "" && request.useragent == ""`,
		`source.address == "192.0.2.1"`,
		`source.principal.startsWith("spiffe://")`,
		`connection.mtls`,
		`metadata.filter_metadata["my.filter"]["k"] == "v"`,
		`metadata.filter_metadata[?"other"].hasValue() == false`,
		`context.route == "r1"`,
		`claims.plan == "gold"`,
		`claims[?"plan"].orValue("") == "gold"`,
		`claims[?"other"].orValue("x") == "x"`,
		`claims.?nested.?a.orValue(false)`,
		`claims.nested.a`,
		`claims.level >= 3 && claims.level == 3`,
		`"x" in claims.list`,
		`claims.nothing == null`,
		`claims[?"plan"].orValue("").matches("^(gold|silver)$")`,
		`claims.plan in ["gold", "silver"]`,
	} {
		// What is asked is told from what failed, which would apply too.
		for _, asked := range []struct {
			text string
			want int
		}{{text, 1}, {"!(" + text + ")", 0}} {
			p := when(t, asked.text)
			m := p.ForRequest(policy.Request{Attributes: whole(), Identity: p.Edge.Identify(whole())})
			if len(m.Applied) != asked.want || len(m.Failures) > 0 {
				t.Errorf("ForRequest(%+v) when %s applies %d rules with failures %v, want %d and none", whole(), asked.text, len(m.Applied), m.Failures, asked.want)
			}
		}
	}
}

// Without anything to know, names have values still, but for what has none.
func TestExpressionNamesOfNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`request.path == "" && request.url_path == "/" && request.query == "" && request.host == "" && request.method == ""`,
		`request.headers.size() == 0 && request.size == 0 && source.address == "" && !connection.mtls`,
		`metadata.filter_metadata.size() == 0 && claims.size() == 0 && context.size() == 0`,
		`claims[?"plan"].orValue("") == ""`,
	} {
		m := when(t, "!("+text+")").ForRequest(policy.Request{})
		if len(m.Applied) != 0 || len(m.Failures) != 0 {
			t.Errorf("ForRequest(nothing) when %s = %+v, want it true", text, m)
		}
	}
}

// Headers are seen if the peer is trusted, or an identity believes them.
func TestExpressionBelievedHeaders(t *testing.T) {
	t.Parallel()
	p := when(t, `"x-user" in request.headers || request.useragent != ""`)
	for _, test := range []struct {
		peer string
		want int
	}{{"10.0.0.1", 1}, {"192.0.2.1", 0}, {"", 0}} {
		got := len(ask(p, call{peer: test.peer, headers: header("x-user", "u", "user-agent", "ua")}).Applied)
		if got != test.want {
			t.Errorf("ForRequest(x-user from %q) applies %d rules, want %d", test.peer, got, test.want)
		}
	}
}

// Of several tokens, a claim is that of the first provider that has it.
func TestExpressionClaimsOfSeveral(t *testing.T) {
	t.Parallel()
	payloads := map[string]any{"b": map[string]any{"x": "b", "y": "b"}, "a": map[string]any{"x": "a", "z": "a"}, "c": "text"}
	c := call{metadata: map[string]map[string]any{"envoy.filters.http.jwt_authn": payloads}}
	p := when(t, `!(claims.x == "a" && claims.y == "b" && claims.z == "a" && claims.size() == 3)`)
	if m := ask(p, c); len(m.Applied) != 0 {
		t.Errorf("ForRequest(%v) = %+v, want claims x: a, y: b, z: a", payloads, m)
	}
}

// A rule is not escaped by what makes its expression fail, and nobody gets an
// override for it.
func TestExpressionFails(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 400_000)
	for _, test := range []struct {
		text string
		call call
	}{
		{`claims.plan == "gold"`, call{}},
		{`claims.plan`, call{metadata: claims("u")}},
		{`claims.sub`, call{metadata: claims("u")}},
		{`int(claims.sub) > 3`, call{metadata: claims("u")}},
		{`1 / request.size > 3`, call{}},
		{`request.time.getHours() < 9`, call{}},
		{`request.query.matches("^(aaaa|bbbb|cccc)*d$")`, call{path: "/?" + long}},
	} {
		s := rules(policy.RuleSpec{
			Name: "r", Match: &policy.MatchSpec{When: test.text}, Limits: hourly(5),
			Overrides: []policy.OverrideSpec{{When: test.text, Unlimited: true}},
		})
		m := ask(compile(t, s), test.call)
		if len(m.Applied) != 1 || m.Applied[0].Unlimited {
			t.Errorf("ForRequest when %s applies %+v, want the rule with its own limits", test.text, m.Applied)
		}
		if len(m.Failures) != 2 || m.Failures[0].Field != "match.when" || m.Failures[1].Field != "overrides[0].when" ||
			m.Failures[0].Rule != m.Applied[0].Rule || m.Failures[0].Err == nil {
			t.Errorf("ForRequest when %s has failures %.300v, want match.when and overrides[0].when", test.text, m.Failures)
		}
	}
}

// Failures are told with a refusal as well.
func TestExpressionFailsBeforeRefusal(t *testing.T) {
	t.Parallel()
	p := compile(t, rules(
		policy.RuleSpec{Name: "a", Match: &policy.MatchSpec{When: "claims.x"}, Shadow: true},
		policy.RuleSpec{Name: "b", Per: []string{"context.nobody"}},
	))
	if m := ask(p, call{}); m.Refusal == nil || len(m.Failures) != 1 || m.Failures[0].Rule.Name != "a" {
		t.Errorf("ForRequest() = %+v, want a refusal and the failure of a", m)
	}
}

// No expression is looked at for a request that the rest of a match is not for.
func TestExpressionLooksLast(t *testing.T) {
	t.Parallel()
	p := compile(t, rules(policy.RuleSpec{Name: "r", Match: &policy.MatchSpec{Path: "/a", Methods: []string{"GET"}, When: "claims.x"}}))
	for _, c := range []call{{path: "/b"}, {path: "/a", method: "PUT"}} {
		if m := ask(p, c); len(m.Failures) != 0 || len(m.Applied) != 0 {
			t.Errorf("ForRequest(%+v) = %+v, want nothing", c, m)
		}
	}
}

func TestCost(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		cost  string
		size  int64
		want  int64
		fails bool
	}{
		{"", 0, 1, false},
		{"0", 0, 0, false},
		{"7", 0, 7, false},
		{"3 + 4", 0, 7, false},
		{"2147483647", 0, 2147483647, false},
		{"request.size", 5, 5, false},
		{"request.size", 0, 0, false},
		{"request.size", -5, 0, false},
		{"request.size", 1 << 40, 1<<31 - 1, false},
		{"1 + request.size / 1024", 3000, 3, false},
		{"double(request.size) / 1000.0", 3001, 4, false},
		{"double(request.size) / -1000.0", 3001, 0, false},
		{"double(request.size) / 0.0", 3001, 1<<31 - 1, false},
		{"double(request.size) / 0.0", -3001, 0, false},
		{"double(request.size) / 0.0", 0, 1, true}, // not a number
		{"uint(request.size)", 9, 9, false},
		{"uint(request.size)", -9, 1, true},
		{"10 / request.size", 0, 1, true},
		{"int(claims.sub)", 0, 1, true},
		{"claims.iat", 0, 1, false},
		{"claims.sub", 0, 1, true},
		{"claims[?\"weight\"].orValue(4)", 0, 4, false},
		{`request.method == "GET" ? 1 : 5`, 0, 1, false},
	} {
		p := compile(t, rules(policy.RuleSpec{Name: "r", Cost: test.cost, Limits: hourly(1 << 31)}))
		a := call{metadata: claims("u")}.attributes()
		a.Size = test.size
		m := p.ForRequest(policy.Request{Attributes: a})
		if got := m.Applied[0].Cost; got != test.want || (len(m.Failures) == 1) != test.fails {
			t.Errorf("ForRequest(size %d) with cost %q costs %d, failures %v, want %d, a failure: %v", test.size, test.cost, got, m.Failures, test.want, test.fails)
		}
		if test.fails && m.Failures[0].Field != "cost" {
			t.Errorf("ForRequest(size %d) with cost %q has a failure of %s, want of cost", test.size, test.cost, m.Failures[0].Field)
		}
	}
}

// Costs are the rule's alone: rules beside it have their own.
func TestCostOfEachRule(t *testing.T) {
	t.Parallel()
	p := compile(t, rules(policy.RuleSpec{Name: "a", Cost: "request.size"}, policy.RuleSpec{Name: "b"}, policy.RuleSpec{Name: "c", Cost: "2"}))
	a := call{}.attributes()
	a.Size = 9
	for i, want := range []int64{9, 1, 2} {
		if got := p.ForRequest(policy.Request{Attributes: a}).Applied[i].Cost; got != want {
			t.Errorf("ForRequest costs %d of rule %d, want %d", got, i, want)
		}
	}
}

// What makes a when fail does not lead past the rules after it: a stop holds
// only where the when is true.
func TestFailedWhenStopsNothing(t *testing.T) {
	t.Parallel()
	p := compile(t, rules(
		policy.RuleSpec{Name: "staff", Match: &policy.MatchSpec{When: `claims.role == "admin"`}, Unlimited: true, Stop: true},
		policy.RuleSpec{Name: "all", Limits: hourly(1)},
	))
	for _, tt := range []struct {
		claims map[string]any
		want   string
	}{
		{nil, "staff all"},
		{map[string]any{"role": "guest"}, "all"},
		{map[string]any{"role": "admin"}, "staff"},
	} {
		a := whole()
		a.Metadata = map[string]map[string]any{"envoy.filters.http.jwt_authn": {"idp": tt.claims}}
		r := policy.Request{Attributes: a, Identity: p.Edge.Identify(a)}
		if got := strings.Join(names(p.ForRequest(r).Applied), " "); got != tt.want {
			t.Errorf("ForRequest with claims %v applied %q, want %q", tt.claims, got, tt.want)
		}
		checkTrace(t, p.Trace(r))
	}
}
