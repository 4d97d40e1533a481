package policy_test

import (
	"testing"

	"github.com/sluice-mesh/sluice/pkg/identity"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

func values(name string, texts ...string) []policy.ValuesSpec {
	return []policy.ValuesSpec{{Name: name, Values: texts}}
}

// burst is what r may spend at once: 0 for no rule, -1 for no limit.
func burst(m policy.Match) int64 {
	switch {
	case len(m.Applied) == 0:
		return 0
	case m.Applied[0].Unlimited:
		return -1
	default:
		return m.Applied[0].Limits.At(0).Burst
	}
}

func TestOverrides(t *testing.T) {
	t.Parallel()
	s := callers(policy.RuleSpec{
		Name: "r", Per: []string{"ip", "user"}, Missing: byIP, Limits: hourly(5),
		Overrides: []policy.OverrideSpec{
			{Values: values("user", "alice", "bob"), Limits: hourly(7)},
			{Values: values("user", "bob", "carol"), Unlimited: true},
			{Values: append(values("ip", "198.51.100.0/24", "2001:db8::7"), values("user", "dan")...), Limits: hourly(9)},
			{When: `claims[?"plan"].orValue("") == "gold"`, Values: values("user", "eve"), Limits: hourly(11)},
			{When: `claims[?"plan"].orValue("") == "gold"`, Limits: hourly(13)},
			{Values: values("key", "secret"), Limits: hourly(15)},
			{Values: values("path", "/vip"), Limits: hourly(17)},
			{Values: values("host", "vip"), Limits: hourly(19)},
			{Values: values("method", "PUT"), Limits: hourly(21)},
			{Values: values("context.tier", "1"), Limits: hourly(23)},
		},
	})
	s.Identities[1].Source.Hash = true // key: compared plain, hashed in keys
	p := compile(t, s)
	gold := map[string]map[string]any{"envoy.filters.http.jwt_authn": {"idp": map[string]any{"plan": "gold"}}}
	user := func(name string) map[string]string { return header("x-user", name) }
	for _, test := range []struct {
		call call
		want int64
	}{
		{call{headers: user("zoe")}, 5},
		{call{headers: user("alice")}, 7},
		{call{headers: user("bob")}, 7},
		{call{headers: user("carol")}, -1},
		{call{headers: user("Alice")}, 5},
		{call{headers: user("dan")}, 5},
		{call{headers: user("dan"), peer: "198.51.100.9"}, 9},
		{call{headers: user("dan"), peer: "::ffff:198.51.100.9"}, 9},
		{call{headers: user("dan"), peer: "2001:db8::7"}, 9},
		{call{headers: user("dan"), peer: "2001:db8::8"}, 5}, // unmasked: the same /64
		{call{headers: user("zoe"), peer: "198.51.100.9"}, 5},
		{call{headers: user("eve")}, 5},
		{call{headers: user("eve"), metadata: gold}, 11},
		{call{headers: user("zoe"), metadata: gold}, 13},
		{call{headers: header("x-user", "zoe", "x-key", "secret")}, 15},
		{call{headers: header("x-user", "zoe", "x-key", "secret,secret")}, 5}, // twice is missing
		{call{headers: user("zoe"), path: "//vip?x"}, 17},
		{call{headers: user("zoe"), host: "VIP:80"}, 19},
		{call{headers: user("zoe"), method: "PUT"}, 21},
		{call{headers: user("zoe"), context: header("tier", "1")}, 23},
		{call{headers: header("x-user", ""), peer: "192.0.2.1"}, 5}, // missing, and the address instead
	} {
		if test.call.peer == "" {
			test.call.peer = "192.0.2.9"
		}
		if got := burst(ask(p, test.call)); got != test.want {
			t.Errorf("ForRequest(%+v) may spend %d, want %d", test.call, got, test.want)
		}
	}
}

// An override has the bucket that the rule has.
func TestOverridesShareTheBucket(t *testing.T) {
	t.Parallel()
	s := callers(policy.RuleSpec{
		Name: "r", Per: []string{"user"}, Cost: "3", Limits: hourly(5),
		Overrides: []policy.OverrideSpec{{Values: values("method", "PUT"), Limits: hourly(9)}, {Values: values("method", "POST"), Unlimited: true}},
	})
	p := compile(t, s)
	var keys []string
	for _, method := range []string{"GET", "PUT", "POST"} {
		keys = append(keys, ask(p, call{method: method, headers: header("x-user", "u")}).Applied[0].Key)
	}
	if keys[0] != keys[1] || keys[1] != keys[2] {
		t.Errorf("ForRequest by GET, PUT and POST charges %q, want one bucket", keys)
	}
	if got := ask(p, call{method: "PUT", headers: header("x-user", "u")}).Applied[0].Cost; got != 3 {
		t.Errorf("ForRequest with an override costs %d, want the rule's 3", got)
	}
}

func TestUnlimitedRule(t *testing.T) {
	t.Parallel()
	p := compile(t, rules(
		policy.RuleSpec{Name: "free", Match: &policy.MatchSpec{Path: "/f"}, Unlimited: true, Stop: true, Cost: "claims.x"},
		policy.RuleSpec{Name: "rest"},
	))
	m := ask(p, call{path: "/f"})
	if len(m.Applied) != 1 || !m.Applied[0].Unlimited || m.Applied[0].Rule.Name != "free" || len(m.Failures) != 0 {
		t.Errorf("ForRequest(/f) = %+v, want the unlimited rule alone, and no cost", m)
	}
}

func TestOverridesOfDescriptors(t *testing.T) {
	t.Parallel()
	s := rules(policy.RuleSpec{
		Name: "r", Descriptor: entries("generic_key=login", "user", "remote_address"), Limits: hourly(5),
		Overrides: []policy.OverrideSpec{
			{Values: values("user", "alice", ""), Limits: hourly(7)},
			{Values: append(values("user", "bob"), values("remote_address", "2001:db8::1")...), Unlimited: true},
		},
	})
	p := compile(t, s)
	for _, test := range []struct {
		user, address string
		want          int64
	}{
		{"zoe", "192.0.2.1", 5},
		{"alice", "192.0.2.1", 7},
		{"", "192.0.2.1", 7},
		{"bob", "192.0.2.1", 5},
		{"bob", "2001:db8::2", -1}, // one caller
	} {
		d := descriptor("generic_key", "login", "user", test.user, "remote_address", test.address)
		if got := burst(policy.Match{Applied: p.ForDescriptor(d)}); got != test.want {
			t.Errorf("ForDescriptor(%v) may spend %d, want %d", d, got, test.want)
		}
	}
}

// An override that knows callers by an identity uses it.
func TestOverridesUseIdentities(t *testing.T) {
	t.Parallel()
	s := identified(rules(policy.RuleSpec{Name: "r", Overrides: []policy.OverrideSpec{{Values: values("user", "a"), Unlimited: true}}}), "user", identity.SourceSpec{Claim: "sub"})
	if p, faults := policy.Compile(s, policy.Options{}); p == nil || len(faults) != 0 {
		t.Errorf("Compile(%+v) = %+v, want no faults", s, faults)
	}
}

func TestMatchHeaders(t *testing.T) {
	t.Parallel()
	p := compile(t, rules(policy.RuleSpec{Name: "ws", Match: &policy.MatchSpec{Headers: []policy.HeaderSpec{{Name: "Upgrade", Value: "websocket"}, {Name: "x-b", Value: "1"}}}}))
	for _, test := range []struct {
		upgrade, b string
		want       int
	}{
		{"websocket", "1", 1},
		{"WebSocket", "1", 1},
		{" websocket ", "1", 1},
		{"h2c, WebSocket", "0,1", 1},
		{"websocket,", "1", 1},
		{"websocket2", "1", 0},
		{"web socket", "1", 0},
		{"websocket", "", 0},
		{"", "1", 0},
	} {
		if got := len(ask(p, call{headers: header("upgrade", test.upgrade, "x-b", test.b)}).Applied); got != test.want {
			t.Errorf("ForRequest(upgrade: %q, x-b: %q) applies %d rules, want %d", test.upgrade, test.b, got, test.want)
		}
	}
}
