package policy_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/descriptors"
	"github.com/sluice-mesh/sluice/pkg/identity"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// A normal path stays as it is, and has nothing left that could be read twice.
func FuzzNormalPath(f *testing.F) {
	for _, target := range []string{"", "*", "/a//../b", "/%%34%31", "/%2%35", `/a\..;x\b`, "/.%2e;x", "http://h/a?b#c", "/%2e%2E/", "\x00\xff", "/%C3%a9"} {
		f.Add(target)
	}
	f.Fuzz(func(t *testing.T, target string) {
		path := policy.NormalPath(target)
		if again := policy.NormalPath(path); again != path {
			t.Errorf("NormalPath(%q) = %q, want itself: it is NormalPath(%q)", path, again, target)
		}
		if path == "*" {
			return
		}
		if path == "" || path[0] != '/' || strings.Contains(path, "//") || strings.ContainsAny(path, `\?# "<>^{}|`+"`") {
			t.Errorf("NormalPath(%q) = %q, want a path in its normal form", target, path)
		}
		for segment := range strings.SplitSeq(path, "/") {
			bare, _, _ := strings.Cut(segment, ";")
			if bare == "." || bare == ".." {
				t.Errorf("NormalPath(%q) = %q, want no dot segments", target, path)
			}
		}
	})
}

// script reads values off text, for a fuzzer to build with.
type script struct{ rest string }

func (s *script) number(n int) int {
	if s.rest == "" {
		return 0
	}
	c := s.rest[0]
	s.rest = s.rest[1:]
	return int(c) % n
}

func (s *script) word() string {
	word, rest, _ := strings.Cut(s.rest, "\n")
	s.rest = rest
	return word
}

func (s *script) words() []string {
	var list []string
	for range s.number(4) {
		list = append(list, s.word())
	}
	return list
}

func (s *script) missing() policy.Missing {
	return policy.Missing{Kind: policy.MissingKind(s.number(6)), Status: 350 + s.number(256)}
}

func (s *script) rule() policy.RuleSpec {
	r := policy.RuleSpec{Name: s.word(), Shadow: s.number(2) == 1, Stop: s.number(2) == 1}
	for range s.number(3) {
		r.Limits = append(r.Limits, bucket.Limit{Name: s.word(), Tokens: int64(s.number(99)), Per: time.Duration(s.number(9)) * time.Second, Burst: int64(s.number(99))})
	}
	if s.number(2) == 1 {
		for range s.number(4) {
			r.Descriptor = append(r.Descriptor, policy.EntrySpec{Key: s.word(), Value: s.word(), Any: s.number(2) == 1})
		}
	}
	if s.number(2) == 1 {
		r.Match = &policy.MatchSpec{Path: s.word(), Methods: s.words(), Hosts: s.words()}
	}
	r.Per, r.Missing = s.words(), s.missing()
	s.more(&r)
	return r
}

// more adds what a rule may have beside.
func (s *script) more(r *policy.RuleSpec) {
	switch s.number(5) {
	case 1:
		r.Cost, r.Unlimited = s.word(), s.number(2) == 1
	case 2:
		r.Debt, r.MaxDebt = true, int64(s.number(99))
	case 3:
		r.Match = &policy.MatchSpec{Path: s.word(), When: s.word(), Headers: []policy.HeaderSpec{{Name: s.word(), Value: s.word()}}}
	case 4:
		o := policy.OverrideSpec{When: s.word(), Limits: r.Limits, Unlimited: s.number(2) == 1}
		for range s.number(3) {
			o.Values = append(o.Values, policy.ValuesSpec{Name: s.word(), Values: s.words()})
		}
		r.Overrides = append(r.Overrides, o)
	}
}

func (s *script) spec() policy.Spec {
	spec := policy.Spec{Domain: s.word(), Trust: identity.EdgeSpec{Hops: s.number(3), Header: s.word(), IPv6Prefix: s.number(130)}}
	spec.Exempt = policy.ExemptSpec{Paths: s.words(), Methods: s.words()}
	for range s.number(3) {
		spec.Identities = append(spec.Identities, policy.IdentitySpec{Name: s.word(), Missing: s.missing(), Source: identity.SourceSpec{Header: s.word(), Claim: s.word(), Always: s.number(2) == 1}})
	}
	for range s.number(4) {
		spec.Rules = append(spec.Rules, s.rule())
	}
	return spec
}

// goodScript is read as a policy without faults, for the fuzzer to start from.
const goodScript = "edge\n\x01x-forwarded-for\n\x40\x01/healthz\n\x00\x01user\n\x01\x50x-user\n\n\x01\x01api\n\x00\x00\x01l\n\x05\x01\x00\x00\x01/a/*\n\x00\x00\x02ip\nuser\n\x00\x00"

func TestGoodScript(t *testing.T) {
	t.Parallel()
	s := script{goodScript}
	if p, faults := policy.Compile(s.spec(), policy.Options{}); p == nil || len(faults) > 0 {
		t.Errorf("Compile(goodScript) = %v, %+v, want a policy and no faults", p, faults)
	}
}

// No spec makes Compile panic, and no request or descriptor a compiled policy.
func FuzzCompileAndAsk(f *testing.F) {
	f.Add("edge\n", "/api/x", "GET", "h:80", "x-user")
	f.Add(goodScript, "/a/b", "PUT", "", "ip")
	f.Fuzz(func(t *testing.T, text, path, method, host, word string) {
		s := script{text}
		p, faults := policy.Compile(s.spec(), policy.Options{})
		if p == nil && !slices.ContainsFunc(faults, func(f policy.Fault) bool { return !f.Warning }) {
			t.Fatalf("Compile = nil, %+v, want a policy or a fault", faults)
		}
		if p == nil {
			p = compile(t, good())
		}
		a := &identity.Attributes{Method: method, Path: path, Host: host, Headers: map[string]string{word: path, "x-user": word}, Source: netip.AddrFrom4([4]byte{192, 0, 2, 1})}
		p.ForRequest(policy.Request{Attributes: a, Identity: p.Edge.Identify(a)})
		p.ForRequest(policy.Request{})
		p.ForDescriptor(descriptors.Descriptor{{Key: word, Value: path}, {Key: method, Value: host}})
		p.ForDescriptor(descriptors.Descriptor{{Key: "masked_remote_address", Value: word}})
	})
}

// No expression makes Compile or a request panic, or takes long: it has a
// value, or is a failure. The faults of one are always the same.
func FuzzExpression(f *testing.F) {
	for _, text := range []string{
		`request.method != "HEAD"`, `claims[?"plan"].orValue("") == "gold"`, `request.size / 1024`, `request.headers.exists(k, k.startsWith("x-"))`,
		`request.path.matches("^/a(b|c)*$")`, `metadata.filter_metadata["a"]["b"] == 3`, `[1, 2].map(x, x * 2)[0] > 1`, `{"a": 1}.a == 1`,
		`duration("1h") > duration("30m") && request.time > timestamp("2020-01-01T00:00:00Z")`, `optional.of(1).orValue(2) == 1`, `context.?x.hasValue()`,
	} {
		f.Add(text, "/a?b", "k")
	}
	f.Fuzz(func(t *testing.T, text, path, word string) {
		s := rules(
			policy.RuleSpec{Name: "w", Match: &policy.MatchSpec{When: text}},
			policy.RuleSpec{Name: "c", Cost: text, Overrides: []policy.OverrideSpec{{When: text, Unlimited: true}}},
		)
		_, faults := policy.Compile(s, policy.Options{})
		_, again := policy.Compile(s, policy.Options{})
		if !slices.Equal(faults, again) {
			t.Errorf("Compile(%q) = %+v and then %+v, want the same", text, faults, again)
		}
		for i := range s.Rules {
			alone := rules(s.Rules[i])
			if i == 1 {
				alone.Rules[0].Overrides = nil
			}
			p, _ := policy.Compile(alone, policy.Options{})
			if p == nil {
				continue
			}
			m := ask(p, call{path: path, headers: header(word, path), context: header(word, word), metadata: claims(word)})
			for _, a := range m.Applied {
				if a.Cost < 0 || a.Cost > 1<<31-1 {
					t.Errorf("ForRequest(%q) with %q costs %d, want 0 to 2^31-1", path, text, a.Cost)
				}
			}
		}
	})
}

// Two requests have one key if and only if they have the same values.
func FuzzKeysAreTheValues(f *testing.F) {
	f.Add("aa", "b", "a", "ab")
	f.Add("", "x", "x", "")
	f.Add("a:1", "b", "a", "1:b")
	spec := rules(policy.RuleSpec{Name: "r", Per: []string{"context.a", "context.b"}, Missing: share})
	f.Fuzz(func(t *testing.T, a1, b1, a2, b2 string) {
		p := compile(t, spec)
		first := ask(p, call{context: header("a", a1, "b", b1)}).Applied[0].Key
		second := ask(p, call{context: header("a", a2, "b", b2)}).Applied[0].Key
		if same := a1 == a2 && b1 == b2; (first == second) != same {
			t.Errorf("keys of (%q, %q) and (%q, %q) = %q and %q, want the same: %v", a1, b1, a2, b2, first, second, same)
		}
	})
}

// Values of two kinds are never one.
func FuzzKindsAreApart(f *testing.F) {
	f.Add("192.0.2.1")
	f.Add("GET")
	f.Add("/")
	kinds := []string{"ip", "user", "path", "method", "host", "header.x-user", "query.q", "cookie.c", "context.c"}
	f.Fuzz(func(t *testing.T, value string) {
		seen := make(map[string]string)
		for _, kind := range kinds {
			p := compile(t, callers(policy.RuleSpec{Name: "r", Per: []string{kind}, Missing: skip}))
			c := call{method: value, host: value, path: "/?q=" + value, peer: "192.0.2.1", headers: header("x-user", value, "cookie", "c="+value), context: header("c", value)}
			for _, a := range ask(p, c).Applied {
				if other, ok := seen[a.Key]; ok {
					t.Errorf("key of %q is %q per %s and per %s, want two keys", value, a.Key, kind, other)
				}
				seen[a.Key] = kind
			}
		}
	})
}
