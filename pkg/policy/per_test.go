package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/descriptors"
	"github.com/sluice-mesh/sluice/pkg/identity"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

func status(n int) policy.Missing {
	return policy.Missing{Kind: policy.MissingStatus, Status: n}
}

var (
	skip  = policy.Missing{Kind: policy.MissingSkip}
	byIP  = policy.Missing{Kind: policy.MissingIP}
	share = policy.Missing{Kind: policy.MissingShare}
)

// callers is a Spec with identities by header.
func callers(rs ...policy.RuleSpec) policy.Spec {
	s := rules(rs...)
	id := func(name, header string, m policy.Missing) policy.IdentitySpec {
		return policy.IdentitySpec{Name: name, Missing: m, Source: identity.SourceSpec{Header: header, Always: true}}
	}
	s.Identities = []policy.IdentitySpec{
		id("user", "x-user", policy.Missing{}), id("key", "x-key", status(401)), id("tenant", "x-tenant", skip), id("team", "x-team", share),
	}
	return s
}

func TestPerMakesTheKey(t *testing.T) {
	t.Parallel()
	c := call{
		method: "PUT", path: "/A//b?q=1&r=%41", host: "Example.com:80", peer: "2001:db8::1",
		headers:  map[string]string{"x-user": "u", "x-id": "i", "cookie": "sid=s", "authorization": "Bearer t"},
		context:  map[string]string{"route": "r1"},
		metadata: map[string]map[string]any{"my.filter": {"a": map[string]any{"b": 7.0}}},
	}
	for _, test := range []struct {
		per  string
		want descriptors.Value
	}{
		{"ip", descriptors.Value{Kind: "ip", Text: "2001:db8::/64"}},
		{"user", descriptors.Value{Kind: "user", Text: "u"}},
		{"path", descriptors.Value{Kind: "path", Text: "/A/b"}},
		{"method", descriptors.Value{Kind: "method", Text: "PUT"}},
		{"host", descriptors.Value{Kind: "host", Text: "example.com"}},
		{"header.x-id", descriptors.Value{Kind: "header.x-id", Text: "i"}},
		{"header.X-ID", descriptors.Value{Kind: "header.x-id", Text: "i"}},
		{"header.authorization", descriptors.Value{Kind: "header.authorization", Text: "Bearer t", Form: descriptors.Hidden}},
		{"query.r", descriptors.Value{Kind: "query.r", Text: "A"}},
		{"cookie.sid", descriptors.Value{Kind: "cookie.sid", Text: "s", Form: descriptors.Hidden}},
		{"context.route", descriptors.Value{Kind: "context.route", Text: "r1"}},
		{"metadata.my.filter.a.b", descriptors.Value{Kind: "metadata.my.filter.a.b", Text: "7"}},
		{"team", descriptors.Value{Kind: "team", Form: descriptors.Shared}},
	} {
		p := compile(t, callers(policy.RuleSpec{Name: "r", Per: []string{test.per}}))
		want := descriptors.NewKeyer([]byte("k")).Key("edge", "r", test.want)
		applied := ask(p, c).Applied
		if len(applied) != 1 || applied[0].Key != want {
			t.Errorf("ForRequest(%+v) per %s = %+v, want the key %s", c, test.per, applied, want)
		}
	}
}

func TestAppliedCarriesTheRule(t *testing.T) {
	t.Parallel()
	deny := policy.OnError(policy.Deny503)
	s := rules(
		policy.RuleSpec{Name: "plain"},
		policy.RuleSpec{Name: "own", Shadow: true, OnError: &deny, Deny: policy.Deny{Status: 503, Body: "no"}},
	)
	s.OnError = policy.Allow
	s.Headers = policy.Headers{Style: policy.IETF}
	s.Domain = "d"
	p := compile(t, s)
	headers := &policy.Headers{Style: policy.IETF}
	key := descriptors.NewKeyer([]byte("k"))
	want := []policy.Applied{
		{
			Rule:   &policy.Rule{Domain: "d", Name: "plain", OnError: policy.Allow, Deny: policy.Deny{Status: 429}, Headers: headers},
			Charge: bucket.Charge{Key: key.Key("d", "plain"), Cost: 1},
		},
		{
			Rule:   &policy.Rule{Domain: "d", Name: "own", Shadow: true, OnError: deny, Deny: policy.Deny{Status: 503, ContentType: "text/plain", Body: "no"}, Headers: headers},
			Charge: bucket.Charge{Key: key.Key("d", "own"), Cost: 1, Shadow: true},
		},
	}
	got := ask(p, call{}).Applied
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(bucket.Charge{}, "Limits")); diff != "" {
		t.Errorf("ForRequest(/) (-want +got):\n%s", diff)
	}
	if l := got[0].Limits.At(0); l.Tokens != 100 || l.Burst != 100 {
		t.Errorf("Limits of ForRequest(/) = %+v, want 100 tokens", l)
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()
	ip := descriptors.Value{Kind: "ip", Text: "192.0.2.1"}
	user := descriptors.Value{Kind: "user", Text: "u"}
	withUser := map[string]string{"x-user": "u"}
	for _, test := range []struct {
		name    string
		rule    policy.RuleSpec
		call    call
		status  int    // of the refusal
		missing string // its name
		values  []descriptors.Value
	}{
		{name: "default", rule: policy.RuleSpec{Per: []string{"user"}}, status: 400, missing: "user"},
		{name: "the identity's", rule: policy.RuleSpec{Per: []string{"key"}}, status: 401, missing: "key"},
		{name: "the rule's beats it", rule: policy.RuleSpec{Per: []string{"key"}, Missing: status(403)}, status: 403, missing: "key"},
		{name: "the rule's beats skip", rule: policy.RuleSpec{Per: []string{"tenant"}, Missing: status(403)}, status: 403, missing: "tenant"},
		{name: "skip", rule: policy.RuleSpec{Per: []string{"tenant"}}},
		{name: "the first decides: skip", rule: policy.RuleSpec{Per: []string{"tenant", "key"}}},
		{name: "the first decides: status", rule: policy.RuleSpec{Per: []string{"key", "tenant"}}, status: 401, missing: "key"},
		{name: "the first missing decides", rule: policy.RuleSpec{Per: []string{"user", "key"}}, call: call{headers: withUser}, status: 401, missing: "key"},
		{name: "an empty value", rule: policy.RuleSpec{Per: []string{"user"}}, call: call{headers: map[string]string{"x-user": ""}}, status: 400, missing: "user"},
		{name: "twice", rule: policy.RuleSpec{Per: []string{"user"}}, call: call{headers: map[string]string{"x-user": "u,v"}}, status: 400, missing: "user"},
		{name: "ip", rule: policy.RuleSpec{Per: []string{"user"}, Missing: byIP}, call: call{peer: "192.0.2.1"}, values: []descriptors.Value{ip}},
		{name: "ip beside ip", rule: policy.RuleSpec{Per: []string{"ip", "user"}, Missing: byIP}, call: call{peer: "192.0.2.1"}, values: []descriptors.Value{ip, ip}},
		{name: "ip without one", rule: policy.RuleSpec{Per: []string{"user"}, Missing: byIP}, status: 400, missing: "user"},
		{name: "no ip", rule: policy.RuleSpec{Per: []string{"ip"}}, status: 400, missing: "ip"},
		{name: "no ip, with ip for it", rule: policy.RuleSpec{Per: []string{"ip"}, Missing: byIP}, status: 400, missing: "ip"},
		{name: "no host", rule: policy.RuleSpec{Per: []string{"host"}}, status: 400, missing: "host"},
		{name: "no header", rule: policy.RuleSpec{Per: []string{"header.x"}, Missing: status(422)}, status: 422, missing: "header.x"},
		{name: "share", rule: policy.RuleSpec{Per: []string{"user", "team"}}, call: call{headers: withUser}, values: []descriptors.Value{user, {Kind: "team", Form: descriptors.Shared}}},
		{name: "shadow never refuses", rule: policy.RuleSpec{Per: []string{"key"}, Shadow: true}},
		{name: "nothing missing", rule: policy.RuleSpec{Per: []string{"user"}}, call: call{headers: withUser}, values: []descriptors.Value{user}},
	} {
		test.rule.Name = "r"
		m := ask(compile(t, callers(test.rule)), test.call)
		var got policy.Refusal
		if m.Refusal != nil {
			got = *m.Refusal
		}
		if got.Status != test.status || got.Name != test.missing || (test.status != 0) != (got.Rule != nil) {
			t.Errorf("%s: Refusal of ForRequest(%+v) = %+v, want status %d for %q", test.name, test.call, m.Refusal, test.status, test.missing)
		}
		key := ""
		if len(m.Applied) == 1 {
			key = m.Applied[0].Key
		}
		want := ""
		if test.values != nil {
			want = descriptors.NewKeyer([]byte("k")).Key("edge", "r", test.values...)
		}
		if key != want {
			t.Errorf("%s: key of ForRequest(%+v) = %q, want %q", test.name, test.call, key, want)
		}
	}
}

func TestTheFirstRefusalInTheFileDecides(t *testing.T) {
	t.Parallel()
	s := rules(
		policy.RuleSpec{Name: "one"},
		policy.RuleSpec{Name: "elsewhere", Match: &policy.MatchSpec{Path: "/x"}, Per: []string{"header.a"}, Missing: status(401)},
		policy.RuleSpec{Name: "two", Per: []string{"header.a"}, Missing: status(402)},
		policy.RuleSpec{Name: "three", Per: []string{"header.a"}, Missing: status(403)},
	)
	m := ask(compile(t, s), call{path: "/"})
	if m.Refusal == nil || m.Refusal.Rule.Name != "two" || m.Refusal.Status != 402 || m.Applied != nil {
		t.Errorf("ForRequest(/) = %+v, want a refusal of rule two with 402 and nothing applied", m)
	}
	s.Rules[0].Stop = true
	if m := ask(compile(t, s), call{path: "/"}); m.Refusal != nil || len(m.Applied) != 1 {
		t.Errorf("ForRequest(/) after a stop = %+v, want rule one applied and no refusal", m)
	}
	s.Rules[0] = policy.RuleSpec{Name: "one", Per: []string{"header.b"}, Missing: skip, Stop: true, Limits: hourly(1)}
	if m := ask(compile(t, s), call{path: "/"}); m.Refusal == nil || m.Refusal.Rule.Name != "two" {
		t.Errorf("ForRequest(/) after a stop that was skipped = %+v, want a refusal of rule two", m)
	}
}

// B013: a credential is not to be found in a key, however it is named.
func TestKeysHideCredentials(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-token-XYZ"
	s := identified(rules(
		policy.RuleSpec{Name: "header", Per: []string{"header.authorization"}},
		policy.RuleSpec{Name: "token", Per: []string{"token"}},
		policy.RuleSpec{Name: "cookie", Per: []string{"cookie.sid"}},
		policy.RuleSpec{Name: "key", Per: []string{"key"}, Overrides: []policy.OverrideSpec{{Values: values("key", secret), Limits: hourly(7)}}},
	), "token", identity.SourceSpec{Bearer: true, Always: true})
	s = identified(s, "key", identity.SourceSpec{Header: "x-key", Always: true, Hash: true})
	m := ask(compile(t, s), call{headers: header("authorization", "Bearer "+secret, "cookie", "sid="+secret, "x-key", secret)})
	if len(m.Applied) != 4 || m.Applied[3].Limits.At(0).Burst != 7 {
		t.Fatalf("ForRequest() applies %+v, want 4 rules, the last with its override", m.Applied)
	}
	for _, a := range m.Applied {
		if strings.Contains(a.Key, secret) {
			t.Errorf("ForRequest() has the key %s of rule %s, want it without the credential", a.Key, a.Rule.Name)
		}
	}
}
