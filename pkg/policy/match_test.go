package policy_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/policy"
)

func TestPathPatterns(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pattern   string
		match     []string
		notMatch  []string
		fieldCase string
	}{
		{
			pattern:  "/a/b",
			match:    []string{"/a/b", "/a//b", "/a/./b", "/a/x/../b", "/a/b?x=1", "/a/b#f", "/%61/b", `/a\b`},
			notMatch: []string{"/a/b/", "/a/b/c", "/a", "/A/b", "/a%2Fb", "/a/bc"},
		},
		{
			pattern:  "/a/*",
			match:    []string{"/a", "/a/", "/a/b", "/a/b/c", "//a//b"},
			notMatch: []string{"/ab", "/", "/b/a", "/a%2Fb", "/a/../b", "*"},
		},
		{pattern: "/", match: []string{"/", "", "/x/.."}, notMatch: []string{"/a", "*"}},
		{pattern: "/*", match: []string{"/", "/a", "/a/b", "/a%2Fb"}, notMatch: []string{"*"}},
		{pattern: "/a/", match: []string{"/a/", "/a/."}, notMatch: []string{"/a", "/a/b"}},
		{
			pattern:  "/users/{id}",
			match:    []string{"/users/1", "/users/a%2Fb", "/users/;x", "/users/{id}"},
			notMatch: []string{"/users", "/users/", "/users/1/", "/users/1/2"},
		},
		{
			pattern:  "/users/{id}/*",
			match:    []string{"/users/1", "/users/1/", "/users/1/a/b"},
			notMatch: []string{"/users/", "/users", "/users//a/../"},
		},
		{pattern: "/{a}/{b}", match: []string{"/x/y"}, notMatch: []string{"/x", "/x/", "/x/y/z"}},
		{pattern: `~^/v\d+/`, match: []string{"/v1/", "/v22/a?b"}, notMatch: []string{"/a/v1/", "/v/1", "/v1"}},
		{pattern: "~b", match: []string{"/abc", "/%62", "/é/b"}, notMatch: []string{"/a?b"}},
		{pattern: "", match: []string{"/", "/a", "*", ""}},

		{fieldCase: "B021", pattern: "/api/users/validate", match: []string{
			"/api/users/validate", "/api//users/validate", "/api/./users/validate",
			"/api/x/../users/validate", "/api/users/validate?x=1", "/api/users/validate#f",
		}},
		{fieldCase: "B023", pattern: "~(?i)^/lang$", match: []string{"/lang", "/LANG", "/Lang"}, notMatch: []string{"/lang/"}},
		{fieldCase: "B024", pattern: "/admin/*", match: []string{"/admin", "/%61dmin"}, notMatch: []string{"/admin%2Fx", "/foo%2F..%2Fadmin"}},
	} {
		p := compile(t, rules(policy.RuleSpec{Name: "r", Match: &policy.MatchSpec{Path: test.pattern}}))
		for _, path := range test.match {
			if len(ask(p, call{method: "GET", path: path}).Applied) != 1 {
				t.Errorf("%s: ForRequest(%q) with path %q applies no rule, want one", test.fieldCase, path, test.pattern)
			}
		}
		for _, path := range test.notMatch {
			if len(ask(p, call{method: "GET", path: path}).Applied) != 0 {
				t.Errorf("%s: ForRequest(%q) with path %q applies a rule, want none", test.fieldCase, path, test.pattern)
			}
		}
	}
}

func TestHostsAndMethods(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		match policy.MatchSpec
		call  call
		want  bool
	}{
		{policy.MatchSpec{Hosts: []string{"api.example.com"}}, call{host: "API.Example.Com:8443"}, true},
		{policy.MatchSpec{Hosts: []string{"API.example.com"}}, call{host: "api.example.com"}, true},
		{policy.MatchSpec{Hosts: []string{"api.example.com"}}, call{host: "api.example.com."}, true},
		{policy.MatchSpec{Hosts: []string{"api.example.com"}}, call{host: "xapi.example.com"}, false},
		{policy.MatchSpec{Hosts: []string{"api.example.com"}}, call{}, false},
		{policy.MatchSpec{Hosts: []string{"*.example.com"}}, call{host: "a.b.example.com"}, true},
		{policy.MatchSpec{Hosts: []string{"*.example.com"}}, call{host: "example.com"}, false},
		{policy.MatchSpec{Hosts: []string{"*.example.com"}}, call{host: "badexample.com"}, false},
		{policy.MatchSpec{Hosts: []string{"*.example.com"}}, call{host: ".example.com"}, false},
		{policy.MatchSpec{Hosts: []string{"a", "b"}}, call{host: "b"}, true},
		{policy.MatchSpec{Hosts: []string{"[::1]"}}, call{host: "[::1]:80"}, true},
		{policy.MatchSpec{Hosts: []string{"[::1]"}}, call{host: "[::1]"}, true},
		{policy.MatchSpec{Methods: []string{"GET", "POST"}}, call{method: "POST"}, true},
		{policy.MatchSpec{Methods: []string{"GET"}}, call{method: "HEAD"}, false},
		{policy.MatchSpec{Methods: []string{"GET"}}, call{method: "get"}, false},
		{policy.MatchSpec{Methods: []string{"PURGE-x"}}, call{method: "PURGE-x"}, true},
		{policy.MatchSpec{Path: "/a", Methods: []string{"GET"}, Hosts: []string{"h"}}, call{path: "/a", host: "h"}, true},
		{policy.MatchSpec{Path: "/a", Methods: []string{"GET"}, Hosts: []string{"h"}}, call{path: "/a", host: "i"}, false},
	} {
		p := compile(t, rules(policy.RuleSpec{Name: "r", Match: &test.match}))
		if got := len(ask(p, test.call).Applied) == 1; got != test.want {
			t.Errorf("ForRequest(%+v) with %+v applies the rule: %v, want %v", test.call, test.match, got, test.want)
		}
	}
}

func TestEveryRuleThatMatchesAppliesInOrder(t *testing.T) {
	t.Parallel()
	at := func(name, path string, stop, shadow bool) policy.RuleSpec {
		return policy.RuleSpec{Name: name, Match: &policy.MatchSpec{Path: path}, Stop: stop, Shadow: shadow}
	}
	for _, test := range []struct {
		name  string
		rules []policy.RuleSpec
		want  []string
	}{
		{"all kinds", []policy.RuleSpec{at("regex", "~a", false, false), at("exact", "/a/b", false, false), at("all", "", false, false), at("under", "/a/*", false, false), at("other", "/b", false, false), at("id", "/{x}/b", false, false)}, []string{"regex", "exact", "all", "under", "id"}},
		{"stop", []policy.RuleSpec{at("one", "/a/*", false, false), at("two", "/a/b", true, false), at("three", "", false, false)}, []string{"one", "two"}},
		{"stop that does not match", []policy.RuleSpec{at("one", "/b", true, false), at("two", "/a/b", false, false)}, []string{"two"}},
		{"shadow does not stop", []policy.RuleSpec{at("one", "", true, true), at("two", "", false, false)}, []string{"one", "two"}},
		{"same match twice", []policy.RuleSpec{at("one", "/a/b", false, false), at("two", "/a/b", false, false)}, []string{"one", "two"}},
	} {
		p := compile(t, rules(test.rules...))
		got := names(ask(p, call{path: "/a/b"}).Applied)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: ForRequest(/a/b) applies other rules (-want +got):\n%s", test.name, diff)
		}
	}
}

// The index is compared with one rule at a time, each alone in a policy.
func TestIndexFindsWhatSingleRulesFind(t *testing.T) {
	t.Parallel()
	var specs []policy.RuleSpec
	segments := []string{"a", "b", "{x}", "*", ""}
	for _, x := range segments {
		for _, y := range segments {
			for _, z := range segments {
				path := "/" + x + "/" + y + "/" + z
				s := policy.RuleSpec{Name: fmt.Sprint("r", len(specs)), Match: &policy.MatchSpec{Path: path}, Limits: hourly(1)}
				if p, _ := policy.Compile(rules(s), policy.Options{}); p != nil {
					specs = append(specs, s)
				}
			}
		}
	}
	all := compile(t, rules(specs...))
	for _, path := range []string{"/", "/a", "/a/", "/a/b", "/a/b/", "/a/b/a", "/b/b/b", "/c/a/b", "/a/c/d/e", "/c/c/"} {
		var want []string
		for _, s := range specs {
			want = append(want, names(ask(compile(t, rules(s)), call{path: path}).Applied)...)
		}
		got := names(ask(all, call{path: path}).Applied)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("ForRequest(%q) (-one by one +together):\n%s", path, diff)
		}
	}
}
