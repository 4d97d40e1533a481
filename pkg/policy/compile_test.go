package policy_test

import (
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/identity"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// good is a policy with nothing wrong in it, for a test to spoil.
func good() policy.Spec {
	return policy.Spec{
		Domain: "edge",
		Trust:  identity.EdgeSpec{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
		Identities: []policy.IdentitySpec{
			{Name: "user", Source: identity.SourceSpec{Header: "x-user"}},
			{Name: "key", Source: identity.SourceSpec{Header: "x-key", Always: true}},
		},
		Exempt: policy.ExemptSpec{Paths: []string{"/healthz"}, Methods: []string{"OPTIONS"}},
		Rules: []policy.RuleSpec{
			{Name: "api", Match: &policy.MatchSpec{Path: "/api/*"}, Per: []string{"user", "key"}, Limits: hourly(5)},
			{Name: "login", Descriptor: []policy.EntrySpec{{Key: "generic_key", Value: "login"}, {Key: "remote_address", Any: true}}, Limits: hourly(5)},
		},
	}
}

func TestCompileTakesAGoodPolicy(t *testing.T) {
	t.Parallel()
	if p, faults := policy.Compile(good(), policy.Options{}); p == nil || len(faults) != 0 {
		t.Errorf("Compile(good) = %v, %+v, want a policy and no faults", p, faults)
	}
}

// A spoiling says what is changed in a good policy, and the places and the
// found texts of the faults that this makes.
type spoiling struct {
	name  string
	spoil func(s *policy.Spec)
	want  []string
}

func (test spoiling) run(t *testing.T, warning bool) {
	t.Helper()
	s := good()
	s.File = "edge.yaml"
	test.spoil(&s)
	p, faults := policy.Compile(s, policy.Options{})
	var got []string
	for _, f := range faults {
		text := f.Path + ": " + f.Found
		if f.Warning && !warning {
			text = "warning: " + text
		}
		got = append(got, text)
		if warning && !f.Warning || f.Want == "" || f.File != "edge.yaml" {
			t.Errorf("%s: Compile gives %+v, want a Want, the File, and Warning if %v", test.name, f, warning)
		}
	}
	if (p != nil) != warning {
		t.Errorf("%s: Compile = %v, want a policy: %v", test.name, p, warning)
	}
	if diff := cmp.Diff(test.want, got); diff != "" {
		t.Errorf("%s: faults (-want +got):\n%s", test.name, diff)
	}
}

// refused is what Compile gives no policy for.
var refused = []spoiling{
	{"no domain", func(s *policy.Spec) { s.Domain = "" }, []string{"domain: no name"}},
	{"domain with a space", func(s *policy.Spec) { s.Domain = "a b" }, []string{`domain: "a b"`}},
	{"long domain", func(s *policy.Spec) { s.Domain = strings.Repeat("x", 65) }, []string{`domain: "` + strings.Repeat("x", 65) + `"`}},
	{"trust", func(s *policy.Spec) { s.Trust.Hops = 1; s.Trust.Header = "x" }, []string{"trust.hops: proxies and hops", `trust.header: "x"`}},
	{"identity with a dot", func(s *policy.Spec) {
		s.Identities[0].Name, s.Rules[0].Per[0] = "a.b", "a.b"
	}, []string{`identities.a.b: "a.b"`}},
	{"identity of a builtin's name", func(s *policy.Spec) {
		s.Identities = append(s.Identities, policy.IdentitySpec{Name: "ip", Source: identity.SourceSpec{Principal: true}})
	}, []string{`identities.ip: "ip"`, "warning: identities.ip: an identity that no rule names"}},
	{"two identities", func(s *policy.Spec) { s.Identities[0].Name = "key"; s.Rules[0].Per = []string{"key"} }, []string{`identities.key: two identities "key"`}},
	{"identity of nothing", func(s *policy.Spec) { s.Identities[1].Source = identity.SourceSpec{} }, []string{"identities.key: none"}},
	{"identity of two things", func(s *policy.Spec) { s.Identities[1].Source.Cookie = "c" }, []string{"identities.key: header and cookie"}},
	{"identity's field", func(s *policy.Spec) { s.Identities[1].Source.Header = "x y" }, []string{`identities.key.header: "x y"`}},
	{"identity that nobody vouches for", func(s *policy.Spec) { s.Trust = identity.EdgeSpec{Hops: 1} }, []string{"identities.user: a value that a client can write, and no trust.proxies whose word is taken"}},
	{"missing out of range", func(s *policy.Spec) { s.Identities[0].Missing = status(500); s.Rules[0].Missing = status(399) }, []string{"identities.user.missing: 500", "rules[0].missing: 399"}},
	{"exempt", func(s *policy.Spec) {
		s.Exempt = policy.ExemptSpec{Paths: []string{"/ok", "healthz"}, Methods: []string{"G T", "get"}, IPs: []netip.Prefix{{}}}
	}, []string{`exempt.paths[1]: "healthz"`, `exempt.methods[0]: "G T"`, `exempt.methods[1]: "get"`, "exempt.ips[0]: invalid Prefix"}},
	{"header names", func(s *policy.Spec) { s.Headers.RetryAfter = "a b"; s.Headers.Limit = "é" }, []string{`headers.names.limit: "é"`, `headers.names.retry_after: "a b"`}},
	{"rule without a name", func(s *policy.Spec) { s.Rules[0].Name, s.Rules[1].Name = "", "" }, []string{"rules[0].name: no name", "rules[1].name: no name"}},
	{"two rules of a name", func(s *policy.Spec) { s.Rules[1].Name = "api" }, []string{`rules[1].name: "api", which is rules[0]'s as well`}},
	{"rule's name", func(s *policy.Spec) { s.Rules[1].Name = "a{b}" }, []string{`rules[1].name: "a{b}"`}},
	{"match and descriptor", func(s *policy.Spec) {
		s.Rules[1].Match, s.Rules[1].Per, s.Rules[1].Missing = &policy.MatchSpec{}, []string{"ip"}, skip
	}, []string{"rules[1].match: match beside descriptor", "rules[1].per: per beside descriptor", "rules[1].missing: missing beside descriptor"}},
	{"empty descriptor", func(s *policy.Spec) { s.Rules[1].Descriptor = []policy.EntrySpec{} }, []string{"rules[1].descriptor: no entries"}},
	{"entry without a key", func(s *policy.Spec) { s.Rules[1].Descriptor[0].Key = "" }, []string{`rules[1].descriptor[0]: "=login"`}},
	{"addresses that are none", func(s *policy.Spec) {
		s.Rules[1].Descriptor = []policy.EntrySpec{{Key: "remote_address", Value: "x"}, {Key: "remote_address", Value: "10.0.0.0/8"}, {Key: "masked_remote_address", Value: "10.0.0.0/33"}}
	}, []string{`rules[1].descriptor[0]: "remote_address=x"`, `rules[1].descriptor[1]: "remote_address=10.0.0.0/8"`, `rules[1].descriptor[2]: "masked_remote_address=10.0.0.0/33"`}},
	{"no limits", func(s *policy.Spec) { s.Rules[0].Limits = nil }, []string{"rules[0].limits: none"}},
	{"too many limits", func(s *policy.Spec) {
		for range 16 {
			s.Rules[0].Limits = append(s.Rules[0].Limits, hourly(5)...)
		}
	}, []string{"rules[0].limits: 17"}},
	{"all limits out of range", func(s *policy.Spec) {
		s.Rules[0].Limits = []bucket.Limit{
			{Tokens: -1, Per: time.Second},
			{Tokens: 1, Per: time.Microsecond},
			{Tokens: 1, Per: time.Second, Burst: -5},
			{Tokens: 1, Per: time.Second, Refill: 9},
			{Tokens: 1, Per: time.Second, Burst: math.MaxInt64},
			{Tokens: 7, Per: time.Second},
		}
	}, []string{
		"rules[0].limits[0].rate: -1 tokens", "rules[0].limits[1].rate: a period of 1µs", "rules[0].limits[2].burst: -5",
		"rules[0].limits[3].refill: refill(9)", "rules[0].limits[4].burst: 9223372036854775807",
	}},
	{"limit's names", func(s *policy.Spec) {
		a := bucket.Limit{Name: "a", Tokens: 1, Per: time.Second}
		s.Rules[0].Limits = []bucket.Limit{a, a, {Name: "b c", Tokens: 1, Per: time.Second}}
	}, []string{`rules[0].limits[1].name: a second limit "a"`, `rules[0].limits[2].name: "b c"`}},
	{"deny", func(s *policy.Spec) { s.Rules[0].Deny = policy.Deny{Status: 200, ContentType: "a\nb"} }, []string{"rules[0].deny.status: 200", `rules[0].deny.content_type: "a\nb"`}},
	{"deny too high", func(s *policy.Spec) { s.Rules[0].Deny.Status = 600 }, []string{"rules[0].deny.status: 600"}},
	{"per", func(s *policy.Spec) {
		s.Rules[0].Per = []string{"user", "key", "usr", "user", "header.", "header.x y", "query", "Ip", "metadata.x", "header.a", "header.A"}
	}, []string{
		`rules[0].per[2]: "usr"`, `rules[0].per[3]: a second "user"`, `rules[0].per[4]: "header."`, `rules[0].per[5]: "header.x y"`,
		`rules[0].per[6]: "query"`, `rules[0].per[7]: "Ip"`, `rules[0].per[8]: "metadata.x"`, `rules[0].per[10]: a second "header.A"`,
	}},
	{"methods", func(s *policy.Spec) { s.Rules[0].Match.Methods = []string{"", "post", "X"} }, []string{`rules[0].match.methods[0]: ""`, `rules[0].match.methods[1]: "post"`}},
	{"methods that are exempt", func(s *policy.Spec) { s.Rules[0].Match.Methods = []string{"OPTIONS"} }, []string{"rules[0].match.methods: methods that are all exempt"}},
	{"path that is exempt", func(s *policy.Spec) { s.Rules[0].Match.Path = "/healthz" }, []string{`rules[0].match.path: "/healthz", which exempt.paths has as "/healthz"`}},
	{"hosts", func(s *policy.Spec) {
		s.Rules[0].Match.Hosts = []string{"", "a:80", "*", "*a", "a.*", "*.a", "a/b", "[::1]", "é", "a."}
	}, []string{
		`rules[0].match.hosts[0]: ""`, `rules[0].match.hosts[1]: "a:80"`, `rules[0].match.hosts[2]: "*"`, `rules[0].match.hosts[3]: "*a"`,
		`rules[0].match.hosts[4]: "a.*"`, `rules[0].match.hosts[6]: "a/b"`, `rules[0].match.hosts[8]: "é"`, `rules[0].match.hosts[9]: "a."`,
	}},
	{"many at once", func(s *policy.Spec) {
		s.Domain, s.Rules[0].Limits, s.Rules[1].Name = "", nil, "api"
	}, []string{"domain: no name", "rules[0].limits: none", `rules[1].name: "api", which is rules[0]'s as well`}},
}

func TestCompileFaults(t *testing.T) {
	t.Parallel()
	for _, test := range refused {
		test.run(t, false)
	}
}

func TestCompilePathFaults(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"a", "*", "~", "~(", "/a*", "/a/*/b", "/a/**", "/{}", "/a{id}", "/{id}x", "/{a}{b}", "/a?b", "/a#b",
		"//a", "/a//b", "/a/./b", "/..", "/%41", "/%2f", "/a b", `/a\b`, "/é", "/*/", "http://h/a",
	} {
		test := spoiling{path, func(s *policy.Spec) { s.Rules[0].Match.Path = path }, nil}
		s := good()
		test.spoil(&s)
		p, faults := policy.Compile(s, policy.Options{})
		if p != nil || len(faults) != 1 || faults[0].Path != "rules[0].match.path" {
			t.Errorf("Compile(path %q) = %v, %+v, want one fault at rules[0].match.path", path, p, faults)
		}
	}
}

func TestCompileWarnings(t *testing.T) {
	t.Parallel()
	for _, test := range []spoiling{
		{"no rules", func(s *policy.Spec) { s.Rules, s.Identities = nil, nil }, []string{"rules: none"}},
		{"unused identity", func(s *policy.Spec) { s.Rules[0].Per = []string{"user"} }, []string{"identities.key: an identity that no rule names"}},
		{"rate 0", func(s *policy.Spec) { s.Rules[0].Limits[0].Tokens = 0 }, []string{"rules[0].limits[0].rate: a rate of 0"}},
		{"stop and shadow", func(s *policy.Spec) { s.Rules[0].Stop, s.Rules[0].Shadow = true, true }, []string{"rules[0].stop: stop with shadow"}},
		{"identity skipped", func(s *policy.Spec) { s.Identities[1].Missing = skip }, []string{"identities.key.missing: skip where key is missing"}},
		{"rule skipped", func(s *policy.Spec) { s.Rules[0].Missing = skip }, []string{"rules[0].missing: skip where key is missing"}},
		{"header alone", func(s *policy.Spec) {
			s.Rules = append(s.Rules, policy.RuleSpec{Name: "x", Per: []string{"path", "header.a", "cookie.b"}, Limits: hourly(1)})
		}, []string{"rules[2].per: header.a with nothing better"}},
		{"header beside ip", func(s *policy.Spec) {
			s.Rules = append(s.Rules, policy.RuleSpec{Name: "x", Per: []string{"header.a", "ip"}, Limits: hourly(1)})
		}, nil},
		{"exempt anywhere", func(s *policy.Spec) { s.Exempt.Paths = []string{"~/healthz$", "~a|^/b"} }, []string{
			`exempt.paths[0]: "~/healthz$", which is found anywhere in a path`, `exempt.paths[1]: "~a|^/b", which is found anywhere in a path`,
		}},
		{"exempt from the start", func(s *policy.Spec) { s.Exempt.Paths = []string{"~^/healthz$", "~(?i)^/ok", `~\A/(a|b)`} }, nil},
		{"stop for a header", func(s *policy.Spec) {
			headers := []policy.HeaderSpec{{Name: "upgrade", Value: "websocket"}}
			s.Rules = append(s.Rules,
				policy.RuleSpec{Name: "x", Match: &policy.MatchSpec{Path: "/x/*", Headers: headers}, Stop: true, Limits: hourly(1)},
				policy.RuleSpec{Name: "y", Match: &policy.MatchSpec{Path: "/y/*", Headers: headers}, Limits: hourly(1)},
				policy.RuleSpec{Name: "z", Match: &policy.MatchSpec{Path: "/z/*", Headers: headers}, Stop: true, Limits: hourly(1)})
		}, []string{"rules[2].match.headers: headers with stop"}},
		{"path alone", func(s *policy.Spec) {
			s.Rules = append(s.Rules, policy.RuleSpec{Name: "x", Per: []string{"path"}, Limits: hourly(1)})
		}, nil},
	} {
		test.run(t, true)
	}
}

func TestCompileWarnsOfRulesAfterStop(t *testing.T) {
	t.Parallel()
	on := func(path string, methods, hosts []string) *policy.MatchSpec {
		return &policy.MatchSpec{Path: path, Methods: methods, Hosts: hosts}
	}
	get, both := []string{"GET"}, []string{"GET", "PUT"}
	for _, test := range []struct {
		first, second *policy.MatchSpec
		per           []string
		want          bool
	}{
		{nil, on("/a", nil, nil), nil, true},
		{on("", nil, nil), nil, nil, true},
		{nil, nil, []string{"ip"}, true},
		{nil, nil, []string{"tenant"}, false}, // may be skipped
		{on("/a", nil, nil), nil, nil, false},
		{on("/a/*", nil, nil), on("/a", nil, nil), nil, true},
		{on("/a/*", nil, nil), on("/a/b/*", nil, nil), nil, true},
		{on("/a/*", nil, nil), on("/ab", nil, nil), nil, false},
		{on("/a/b", nil, nil), on("/a/*", nil, nil), nil, false},
		{on("/a/b", nil, nil), on("/a/b/c", nil, nil), nil, false},
		{on("/{x}", nil, nil), on("/a", nil, nil), nil, true},
		{on("/{x}", nil, nil), on("/", nil, nil), nil, false},
		{on("/a", nil, nil), on("/{x}", nil, nil), nil, false},
		{on("~a", nil, nil), on("~a", nil, nil), nil, true},
		{on("~a", nil, nil), on("/a", nil, nil), nil, false},
		{on("", both, nil), on("", get, nil), nil, true},
		{on("", get, nil), on("", both, nil), nil, false},
		{on("", get, nil), nil, nil, false},
		{on("", nil, []string{"*.b.c"}), on("", nil, []string{"a.b.c", "*.a.b.c"}), nil, true},
		{on("", nil, []string{"*.b.c"}), on("", nil, []string{"b.c"}), nil, false},
		{on("", nil, []string{"b.c"}), nil, nil, false},
		{&policy.MatchSpec{When: `claims.a == "b"`}, &policy.MatchSpec{When: `claims.a == "b"`}, nil, false}, // where it fails, both apply
	} {
		s := callers(policy.RuleSpec{Name: "first", Match: test.first, Per: test.per, Stop: true})
		s.Rules = append(s.Rules, policy.RuleSpec{Name: "second", Match: test.second, Limits: hourly(1)})
		_, faults := policy.Compile(s, policy.Options{})
		got := false
		for _, f := range faults {
			got = got || f.Path == "rules[1]" && f.Warning
		}
		if got != test.want {
			t.Errorf("Compile(%+v per %v, %+v) warns of rules[1]: %v, want %v", test.first, test.per, test.second, got, test.want)
		}
	}
}

func TestCompileWarnsOfDescriptorsAfterStop(t *testing.T) {
	t.Parallel()
	any1, fixed := []policy.EntrySpec{{Key: "a", Any: true}}, []policy.EntrySpec{{Key: "a", Value: "1"}}
	for _, test := range []struct {
		first, second []policy.EntrySpec
		want          int
	}{
		{any1, fixed, 1},
		{fixed, fixed, 1},
		{fixed, any1, 0},
		{any1, append(any1[:1:1], fixed...), 0},
		{any1, nil, 0},
	} {
		s := rules(policy.RuleSpec{Name: "first", Descriptor: test.first, Stop: true}, policy.RuleSpec{Name: "second", Descriptor: test.second})
		if _, faults := policy.Compile(s, policy.Options{}); len(faults) != test.want {
			t.Errorf("Compile(%+v, %+v) = %+v, want %d warnings", test.first, test.second, faults, test.want)
		}
	}
}
