package policy_test

import (
	"strings"
	"testing"

	"github.com/sluice-mesh/sluice/pkg/policy"
)

func TestSet(t *testing.T) {
	t.Parallel()
	make1 := func(domain string, r policy.RuleSpec) *policy.Policy {
		s := rules(r)
		s.Domain, s.File = domain, domain+".yaml"
		return compile(t, s)
	}
	request := policy.RuleSpec{Name: "r"}
	descriptor := policy.RuleSpec{Name: "r", Descriptor: entries("a")}
	web, app, rls := make1("web", request), make1("app", request), make1("rls", descriptor)
	for _, test := range []struct {
		name     string
		policies []*policy.Policy
		standard string
		domain   string
		want     *policy.Policy
		warned   bool // that requests which name no domain have none
	}{
		{"the only one", []*policy.Policy{web}, "", "", web, false},
		{"the only one with such rules", []*policy.Policy{rls, web}, "", "", web, false},
		{"two", []*policy.Policy{web, app}, "", "", nil, true},
		{"two and a default", []*policy.Policy{web, app}, "app", "", app, false},
		{"the route's word", []*policy.Policy{web, app}, "app", "web", web, false},
		{"the route's word without a default", []*policy.Policy{web, app}, "", "web", web, true},
		{"unknown", []*policy.Policy{web}, "web", "x", nil, false},
		{"descriptors alone", []*policy.Policy{rls}, "", "", nil, false},
		{"descriptors by default", []*policy.Policy{rls, web}, "rls", "", rls, false},
		{"none", nil, "", "", nil, false},
	} {
		set, faults := policy.NewSet(policy.SetOptions{Policies: test.policies, Default: test.standard})
		if warned := len(faults) == 1 && faults[0].Warning && faults[0].Path == "--domain"; warned != test.warned || len(faults) > 1 {
			t.Errorf("%s: NewSet = %+v, want a warning of --domain: %v", test.name, faults, test.warned)
			continue
		}
		if got := set.ForRequests(test.domain); got != test.want {
			t.Errorf("%s: ForRequests(%q) = %v, want %v", test.name, test.domain, got, test.want)
		}
		if got := len(set.Policies()); got != len(test.policies) {
			t.Errorf("%s: len(Policies()) = %d, want %d", test.name, got, len(test.policies))
		}
		for _, p := range test.policies {
			if got := set.Domain(p.Domain); got != p {
				t.Errorf("%s: Domain(%q) = %v, want %v", test.name, p.Domain, got, p)
			}
		}
		if got := set.Domain("x"); got != nil {
			t.Errorf("%s: Domain(x) = %v, want nil", test.name, got)
		}
	}
}

func TestNilSetKnowsNoDomain(t *testing.T) {
	t.Parallel()
	var s *policy.Set
	if s.Domain("a") != nil || s.ForRequests("") != nil || s.Policies() != nil {
		t.Errorf("a nil Set has a policy, want none")
	}
}

func TestNewSetFaults(t *testing.T) {
	t.Parallel()
	make1 := func(file string) *policy.Policy {
		s := rules(policy.RuleSpec{Name: "r"})
		s.File = file
		return compile(t, s)
	}
	set, faults := policy.NewSet(policy.SetOptions{Policies: []*policy.Policy{make1("a.yaml"), make1("b.yaml"), make1("")}, Default: "x"})
	if set != nil || len(faults) != 3 {
		t.Fatalf("NewSet = %v, %+v, want three faults", set, faults)
	}
	for i, want := range []struct{ file, path, found string }{
		{"b.yaml", "domain", `"edge", which is a.yaml's as well as b.yaml's`},
		{"", "domain", `"edge", which is a.yaml's as well as an unnamed policy's`},
		{"", "--domain", `"x"`},
	} {
		f := faults[i]
		if f.File != want.file || f.Path != want.path || !strings.Contains(f.Found, want.found) || f.Warning {
			t.Errorf("fault %d of NewSet = %+v, want %+v", i, f, want)
		}
	}
}

func TestRulesAreListed(t *testing.T) {
	t.Parallel()
	p := compile(t, rules(policy.RuleSpec{Name: "b"}, policy.RuleSpec{Name: "a", Descriptor: entries("x")}))
	list := p.Rules()
	if len(list) != 2 || list[0].Name != "b" || list[1].Name != "a" {
		t.Errorf("Rules() = %v, want b and a", list)
	}
	list[0] = nil
	if p.Rules()[0] == nil {
		t.Errorf("Rules() shares its slice, want the caller's own")
	}
}
