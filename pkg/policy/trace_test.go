package policy_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/descriptors"
	"github.com/sluice-mesh/sluice/pkg/identity"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// traced is a policy in which much can become of a rule.
func traced(t testing.TB) *policy.Policy {
	t.Helper()
	match := func(m policy.MatchSpec) *policy.MatchSpec { return &m }
	s := rules(
		policy.RuleSpec{Name: "wide", Per: []string{"ip"}},
		policy.RuleSpec{Name: "users", Match: match(policy.MatchSpec{Path: "/api/*"}), Per: []string{"user", "ip"}, Missing: policy.Missing{Kind: policy.MissingSkip}},
		policy.RuleSpec{Name: "shared", Match: match(policy.MatchSpec{Path: "/api/*"}), Per: []string{"user"}, Missing: policy.Missing{Kind: policy.MissingShare}},
		policy.RuleSpec{Name: "writes", Match: match(policy.MatchSpec{Methods: []string{"POST", "PUT"}, Hosts: []string{"*.example.com"}}), Per: []string{"user"}},
		policy.RuleSpec{Name: "gold", Match: match(policy.MatchSpec{Headers: []policy.HeaderSpec{{Name: "x-plan", Value: "gold"}}})},
		policy.RuleSpec{Name: "login", Descriptor: []policy.EntrySpec{{Key: "generic_key", Value: "login"}, {Key: "remote_address", Any: true}}},
		policy.RuleSpec{Name: "big", Match: match(policy.MatchSpec{When: "request.size > 10"})},
		policy.RuleSpec{Name: "stop", Match: match(policy.MatchSpec{Path: "/stop"}), Stop: true, Overrides: []policy.OverrideSpec{
			{When: `request.method == "PUT"`, Unlimited: true}, {Values: []policy.ValuesSpec{{Name: "ip", Values: []string{"192.0.2.0/24"}}}, Limits: hourly(7)},
		}},
		policy.RuleSpec{Name: "last"},
	)
	s.Identities = []policy.IdentitySpec{
		{Name: "user", Source: identity.SourceSpec{Header: "x-user", Always: true}},
		{Name: "token", Source: identity.SourceSpec{Bearer: true, Always: true}, Missing: policy.Missing{Kind: policy.MissingStatus, Status: 401}},
	}
	s.Rules[5].Limits = hourly(5)
	s.Exempt = policy.ExemptSpec{Paths: []string{"/healthz", "/livez"}, Methods: []string{"OPTIONS"}, IPs: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}}
	s.Rules[4].Per = []string{"ip"}
	return compile(t, s)
}

func trace(p *policy.Policy, c call) policy.Trace {
	a := c.attributes()
	return p.Trace(policy.Request{Attributes: a, Identity: p.Edge.Identify(a)})
}

// outcomes writes each rule with what became of it, and the last condition.
func outcomes(t policy.Trace) string {
	var b strings.Builder
	for _, r := range t.Rules {
		fmt.Fprintf(&b, "%s %v", r.Rule.Name, r.Verdict)
		if r.By != nil {
			b.WriteString(" by " + r.By.Name)
		}
		if n := len(r.Conditions); n > 0 {
			fmt.Fprintf(&b, " %s=%s", r.Conditions[n-1].Field, r.Conditions[n-1].Found)
		}
		if r.Override >= 0 {
			fmt.Fprintf(&b, " override %d", r.Override)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestTraceOutcomes(t *testing.T) {
	t.Parallel()
	p := traced(t)
	for _, tt := range []struct {
		call call
		want string
	}{
		{call{path: "/api/x", peer: "192.0.2.1"}, `wide applies
users lacks match.path=/api/x
shared applies match.path=/api/x
writes mismatch match.methods=GET
gold mismatch match.headers.x-plan=no such header
login other_door
big mismatch match.when=false
stop mismatch match.path=/api/x
last applies
`},
		{call{path: "/stop", peer: "192.0.2.1", headers: map[string]string{"x-plan": "silver,gold"}}, `wide applies
users mismatch match.path=/stop
shared mismatch match.path=/stop
writes mismatch match.methods=GET
gold applies match.headers.x-plan=gold
login other_door
big mismatch match.when=false
stop applies match.path=/stop override 1
last stopped by stop
`},
		{call{method: "PUT", path: "/stop", host: "a.example.com", peer: "192.0.2.1", headers: map[string]string{"x-plan": "silver"}}, `wide applies
users mismatch match.path=/stop
shared mismatch match.path=/stop
writes refuses match.hosts=a.example.com
gold unreached by writes
login other_door
big unreached by writes
stop unreached by writes
last unreached by writes
`},
	} {
		if diff := cmp.Diff(tt.want, outcomes(trace(p, tt.call))); diff != "" {
			t.Errorf("Trace(%+v) -want +got:\n%s", tt.call, diff)
		}
	}
}

func TestTraceExempt(t *testing.T) {
	t.Parallel()
	p := traced(t)
	for _, tt := range []struct {
		call call
		want string
	}{
		{call{path: "/livez"}, "exempt.paths[1]"},
		{call{method: "OPTIONS"}, "exempt.methods[0]"},
		{call{peer: "203.0.113.9"}, "exempt.ips"},
		{call{path: "/x"}, ""},
	} {
		got := trace(p, tt.call)
		if got.ExemptBy != tt.want || got.Exempt != (tt.want != "") || (len(got.Rules) == 0) != got.Exempt {
			t.Errorf("Trace(%+v) is exempt by %q, %v, with %d rules, want %q", tt.call, got.ExemptBy, got.Exempt, len(got.Rules), tt.want)
		}
	}
}

func TestTraceDescriptor(t *testing.T) {
	t.Parallel()
	p := traced(t)
	for _, tt := range []struct {
		d    descriptors.Descriptor
		want string // of the rule login
	}{
		{descriptors.Descriptor{{Key: "generic_key", Value: "login"}, {Key: "remote_address", Value: "2001:db8::1"}}, "login applies descriptor[1]=remote_address=2001:db8::/64"},
		{descriptors.Descriptor{{Key: "generic_key", Value: "logout"}, {Key: "remote_address", Value: "192.0.2.1"}}, "login mismatch descriptor[0]=generic_key=logout"},
		{descriptors.Descriptor{{Key: "generic_key", Value: "login"}}, "login mismatch descriptor=1 entry"},
	} {
		got := p.TraceDescriptor(tt.d)
		if !strings.Contains(outcomes(got), tt.want+"\n") || got.Rules[0].Verdict != policy.OtherDoor {
			t.Errorf("TraceDescriptor(%v) = %s, want %s", tt.d, outcomes(got), tt.want)
		}
		checkTrace(t, got)
	}
}

func TestCallers(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	for rule, by := range traced(t).Callers() {
		got[rule.Name] = by
	}
	want := map[string]string{"wide": "ip", "users": "user", "shared": "user", "writes": "user", "gold": "ip", "login": "remote_address"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Callers() -want +got:\n%s", diff)
	}
}

// A secret is in no trace.
func TestTraceHides(t *testing.T) {
	t.Parallel()
	got := trace(traced(t), call{path: "/api/x", headers: map[string]string{"authorization": "Bearer hunter2", "x-user": "alice"}})
	want := []policy.Value{
		{Name: "user", Text: "alice", Missing: policy.Missing{Kind: policy.MissingStatus, Status: 400}},
		{Name: "token", Hidden: true, Missing: policy.Missing{Kind: policy.MissingStatus, Status: 401}},
	}
	if diff := cmp.Diff(want, got.Identities); diff != "" {
		t.Errorf("Trace() has other identities, -want +got:\n%s", diff)
	}
}

// checkTrace wants the rules that a trace has apply to be those of its Match.
func checkTrace(t *testing.T, got policy.Trace) {
	t.Helper()
	var applied []string
	var refusal *policy.Rule
	for _, r := range got.Rules {
		switch r.Verdict {
		case policy.Applies:
			applied = append(applied, r.Rule.Name)
		case policy.Refuses:
			refusal = r.Rule
		}
	}
	if got.Refusal != nil {
		if refusal != got.Refusal.Rule {
			t.Errorf("Trace() = %s, want %s refused", outcomes(got), got.Refusal.Rule.Name)
		}
		return
	}
	if diff := cmp.Diff(names(got.Applied), applied); diff != "" || refusal != nil {
		t.Errorf("Trace() = %s, which is not its Match, -want +got:\n%s", outcomes(got), diff)
	}
}

// A trace says what a decision does, of every policy and request.
func FuzzTrace(f *testing.F) {
	f.Add("edge\n", "/api/x", "GET", "h:80", "x-user")
	f.Add(goodScript, "/a/b", "PUT", "", "ip")
	fixed := traced(f)
	f.Fuzz(func(t *testing.T, text, path, method, host, word string) {
		s := script{text}
		p, _ := policy.Compile(s.spec(), policy.Options{})
		all := []*policy.Policy{fixed}
		if p != nil {
			all = append(all, p)
		}
		c := call{path: path, method: method, host: host, peer: "192.0.2.1", headers: map[string]string{word: path, "x-plan": word}}
		for _, p := range all {
			checkTrace(t, trace(p, c))
			checkTrace(t, p.TraceDescriptor(descriptors.Descriptor{{Key: word, Value: path}, {Key: method, Value: host}}))
		}
	})
}
