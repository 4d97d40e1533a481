package policy_test

import (
	"net/netip"
	"testing"

	"github.com/sluice-mesh/sluice/pkg/identity"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

func TestExempt(t *testing.T) {
	t.Parallel()
	s := rules(policy.RuleSpec{Name: "r", Per: []string{"header.x-key"}})
	s.Trust = identity.EdgeSpec{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	s.Exempt = policy.ExemptSpec{
		Paths:   []string{"/healthz", "/static/*", "~^/v[0-9]+/ping$"},
		Methods: []string{"OPTIONS"},
		IPs:     []netip.Prefix{netip.MustParsePrefix("172.18.0.0/16"), netip.MustParsePrefix("2001:db8::7/128")},
	}
	p := compile(t, s)
	for _, test := range []struct {
		call call
		want bool
	}{
		{call{path: "/healthz"}, true},
		{call{path: "//healthz?x"}, true},
		{call{path: "/healthz/"}, false},
		{call{path: "/static"}, true},
		{call{path: "/static/a"}, true},
		{call{path: "/static/../a"}, false},
		{call{path: "/v2/ping"}, true},
		{call{path: "/", method: "OPTIONS"}, true},
		{call{path: "/", method: "options"}, false},
		{call{path: "/", peer: "172.18.0.9"}, true},
		{call{path: "/", peer: "::ffff:172.18.0.9"}, true},
		{call{path: "/", peer: "172.19.0.9"}, false},
		{call{path: "/", peer: "2001:db8::7"}, true},
		{call{path: "/", peer: "2001:db8::8"}, false}, // unmasked: the same /64
		{call{path: "/", peer: "10.0.0.1", headers: map[string]string{"x-forwarded-for": "172.18.0.9"}}, true},
		{call{path: "/", peer: "203.0.113.7", headers: map[string]string{"x-forwarded-for": "172.18.0.9"}}, false},
		{call{path: "/"}, false},
	} {
		m := ask(p, test.call)
		if m.Exempt != test.want || test.want == (m.Refusal != nil) {
			t.Errorf("ForRequest(%+v) = %+v, want Exempt %v, else a refusal", test.call, m, test.want)
		}
	}
}
