package policy_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/identity"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// times repeats c.
func times(n int, c call) []call {
	var calls []call
	for range n {
		calls = append(calls, c)
	}
	return calls
}

func calls(groups ...[]call) []call {
	var all []call
	for _, g := range groups {
		all = append(all, g...)
	}
	return all
}

func header(pairs ...string) map[string]string {
	h := make(map[string]string)
	for i := 0; i < len(pairs); i += 2 {
		h[pairs[i]] = pairs[i+1]
	}
	return h
}

func claims(sub string) map[string]map[string]any {
	return map[string]map[string]any{"envoy.filters.http.jwt_authn": {"idp": map[string]any{"sub": sub, "iat": 1.0}}}
}

// subscriber is a caller of a plan, "" for none.
func subscriber(sub, plan string) call {
	payload := map[string]any{"sub": sub}
	if plan != "" {
		payload["plan"] = plan
	}
	return call{metadata: map[string]map[string]any{"envoy.filters.http.jwt_authn": {"idp": payload}}}
}

// plans are overrides by a claim.
func plans(limits map[string]int64) []policy.OverrideSpec {
	var overrides []policy.OverrideSpec
	for plan, n := range limits {
		overrides = append(overrides, policy.OverrideSpec{When: `claims[?"plan"].orValue("") == "` + plan + `"`, Limits: hourly(n)})
	}
	return overrides
}

func trusting(s policy.Spec, prefix string) policy.Spec {
	s.Trust = identity.EdgeSpec{Proxies: []netip.Prefix{netip.MustParsePrefix(prefix)}}
	return s
}

func identified(s policy.Spec, name string, source identity.SourceSpec) policy.Spec {
	s.Identities = append(s.Identities, policy.IdentitySpec{Name: name, Source: source})
	return s
}

func exempting(s policy.Spec, e policy.ExemptSpec) policy.Spec {
	s.Exempt = e
	return s
}

// What went wrong with other limiters, each with the answers that its reporter
// wanted.
func TestFieldCases(t *testing.T) {
	t.Parallel()
	rule := func(n int64, per ...string) policy.RuleSpec {
		return policy.RuleSpec{Name: "r" + strings.Join(per, "."), Per: per, Limits: hourly(n)}
	}
	missing := func(r policy.RuleSpec, m policy.Missing) policy.RuleSpec {
		r.Missing = m
		return r
	}
	matching := func(r policy.RuleSpec, m policy.MatchSpec) policy.RuleSpec {
		r.Match = &m
		return r
	}
	tiered := func(r policy.RuleSpec, limits map[string]int64) policy.RuleSpec {
		r.Overrides = plans(limits)
		return r
	}
	keyed := func(key string) call { return call{headers: header("x-api-key", key)} }
	xff := func(peer, forwarded string) call {
		return call{peer: peer, headers: header("x-forwarded-for", forwarded)}
	}
	const ip = "203.0.113.7"
	for _, test := range []struct {
		id    string
		spec  policy.Spec
		calls []call
		want  string
	}{
		{"B001", trusting(rules(rule(2, "ip")), "10.0.0.0/8"), []call{
			xff("10.0.0.5", "1.1.1.1, "+ip), xff("10.0.0.5", "1.1.1.2, "+ip), xff("10.0.0.5", "1.1.1.3, "+ip), xff("10.0.0.5", "1.1.1.4, "+ip),
		}, "AADD"},
		{"B003", rules(rule(2, "ip")), []call{xff("10.0.0.5", "198.51.100.1"), xff("10.0.0.5", "198.51.100.2"), xff("10.0.0.5", "198.51.100.3")}, "AAD"},
		{"B003 trusted", trusting(rules(rule(2, "ip")), "10.0.0.5/32"), []call{xff("10.0.0.5", "198.51.100.1"), xff("10.0.0.5", "198.51.100.2"), xff("10.0.0.5", "198.51.100.3")}, "AAA"},
		{"B004 skip", rules(missing(rule(1, "header.x-api-key"), skip)), calls(times(3, call{}), times(2, keyed("")), times(2, keyed("k1"))), "AAAAAAD"},
		{"B004 deny", rules(rule(1, "header.x-api-key")), calls(times(3, call{}), times(2, keyed("")), times(2, keyed("k1"))), "DDDDDAD"},
		{"B010", rules(rule(1, "header.h1", "header.h2")), []call{{headers: header("h1", "aa", "h2", "b")}, {headers: header("h1", "a", "h2", "ab")}}, "AA"},
		{"B011", rules(missing(rule(1, "header.x-user"), byIP)), []call{{peer: "198.51.100.9", headers: header("x-user", ip)}, {peer: ip}}, "AA"},
		{"B012", rules(rule(1, "header.x-api-key")), []call{keyed(strings.Repeat("x", 4095) + "a"), keyed(strings.Repeat("x", 4095) + "b"), keyed(strings.Repeat("x", 4095) + "a")}, "AAD"},
		{"B015", rules(rule(3, "ip"), rule(2, "header.x-api-key")), []call{
			{peer: ip, headers: header("x-api-key", "k1")}, {peer: ip, headers: header("x-api-key", "k2")}, {peer: ip, headers: header("x-api-key", "k3")}, {peer: ip, headers: header("x-api-key", "k4")},
		}, "AAAD"},
		{"B021", rules(matching(rule(1, "ip", "path"), policy.MatchSpec{Path: "/api/users/validate"})), []call{
			{peer: ip, path: "/api/users/validate"},
			{peer: ip, path: "/api//users/validate"},
			{peer: ip, path: "/api/./users/validate"},
			{peer: ip, path: "/api/x/../users/validate"},
			{peer: ip, path: "/api/users/validate?x=1"},
			{peer: ip, path: "/api/users/validate#f"},
		}, "ADDDDD"},
		{"B023", rules(matching(rule(3, "ip"), policy.MatchSpec{Path: "~(?i)^/lang$", Methods: []string{"POST"}})), times(5, call{peer: ip, method: "POST", path: "/LANG"}), "AAADD"},
		{"B024", rules(matching(rule(1, "ip"), policy.MatchSpec{Path: "/admin/*"})), []call{
			{peer: ip, path: "/admin"}, {peer: ip, path: "/%61dmin"}, {peer: ip, path: "/admin%2Fx"}, {peer: ip, path: "/foo%2F..%2Fadmin"},
		}, "ADAA"},
		{"B027", exempting(rules(rule(1, "ip")), policy.ExemptSpec{Paths: []string{"/healthz", "/readyz"}}), calls(times(3, call{peer: ip, path: "/healthz"}), times(2, call{peer: ip, path: "/x"}), times(1, call{peer: ip, path: "/healthz"})), "XXXADX"},
		{"B028", trusting(exempting(rules(rule(1, "ip")), policy.ExemptSpec{IPs: []netip.Prefix{netip.MustParsePrefix("172.18.0.0/16")}}), "10.0.0.0/8"), calls(times(2, call{peer: "172.18.0.9"}), times(2, xff(ip, "172.18.0.9"))), "XXAD"},
		{"B050", rules(rule(10, "header.org"), rule(5, "header.org", "header.integrator")), calls(times(8, call{headers: header("org", "o", "integrator", "1")}), times(5, call{headers: header("org", "o", "integrator", "2")})), "AAAAADDDAAAAA"},
		{"B052", rules(policy.RuleSpec{Name: "r1", Per: []string{"ip"}, Limits: hourly(5)}, policy.RuleSpec{Name: "r2", Per: []string{"ip"}, Limits: hourly(5)}), times(6, call{peer: ip}), "AAAAAD"},
		{"B053", rules(rule(3, "path")), calls(times(2, call{peer: "192.0.2.1", path: "/api"}), times(2, call{peer: "192.0.2.2", path: "/api"})), "AAAD"},
		{"B054", rules(rule(3, "ip")), calls(times(2, call{peer: ip, path: "/r1"}), times(2, call{peer: ip, path: "/r2"})), "AAAD"},
		{"B059", identified(rules(tiered(rule(5, "sub"), map[string]int64{"free": 10, "premium": 100})), "sub", identity.SourceSpec{Claim: "sub"}), calls(
			times(12, subscriber("a", "free")), times(12, subscriber("b", "premium")), times(7, subscriber("c", "gold")), times(7, subscriber("d", "")),
		), "AAAAAAAAAADD" + "AAAAAAAAAAAA" + "AAAAADD" + "AAAAADD"},
		{"B062", rules(
			policy.RuleSpec{Name: "block", Match: &policy.MatchSpec{Path: "/b"}, Limits: []bucket.Limit{{Tokens: 0, Per: time.Second}}},
			policy.RuleSpec{Name: "free", Match: &policy.MatchSpec{Path: "/f"}, Unlimited: true},
		), calls(times(3, call{path: "/b"}), times(1000, call{path: "/f"})), "DDD" + strings.Repeat("A", 1000)},
		{"B060", identified(rules(rule(2, "sub")), "sub", identity.SourceSpec{Claim: "sub"}), []call{
			{headers: header("authorization", "Bearer 1"), metadata: claims("u")},
			{headers: header("authorization", "Bearer 2"), metadata: claims("u")},
			{headers: header("authorization", "Bearer 3"), metadata: claims("u")},
			{headers: header("authorization", "Bearer 4"), metadata: claims("v")},
		}, "AADA"},
		{"B096", rules(matching(rule(1, "ip"), policy.MatchSpec{Headers: []policy.HeaderSpec{{Name: "upgrade", Value: "websocket"}}})), []call{
			{peer: ip, path: "/ws", headers: header("upgrade", "WebSocket")}, {peer: ip, path: "/ws", headers: header("upgrade", "websocket")}, {peer: ip, path: "/ws"},
		}, "ADA"},
		{"B107", identified(rules(missing(rule(2, "sub"), byIP)), "sub", identity.SourceSpec{Claim: "sub"}), calls(times(3, call{peer: "203.0.113.1"}), times(1, call{peer: "203.0.113.2"})), "AADA"},
	} {
		p, l := compile(t, test.spec), make(ledger)
		var got strings.Builder
		for _, c := range test.calls {
			got.WriteByte(l.decide(ask(p, c)))
		}
		if got.String() != test.want {
			t.Errorf("%s: answers = %s, want %s", test.id, &got, test.want)
		}
		for key := range l {
			if len(key) > 200 {
				t.Errorf("%s: key %q has %d bytes, want at most 200", test.id, key, len(key))
			}
		}
	}
}
