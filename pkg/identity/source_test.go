package identity_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/identity"
)

func mustSource(t testing.TB, spec identity.SourceSpec) identity.Source {
	t.Helper()
	s, err := identity.NewSource(spec)
	if err != nil {
		t.Fatalf("NewSource(%+v) = %v", spec, err)
	}
	return s
}

// checkValue wants a trusted peer's attributes to have the value want, "" for
// a missing one.
func checkValue(t *testing.T, spec identity.SourceSpec, a *identity.Attributes, want string) {
	t.Helper()
	got, ok := mustSource(t, spec).Value(a, identity.Identity{Trusted: true})
	if got != want || ok != (want != "") {
		t.Errorf("Value(%+v) of %+v = %q, %v, want %q", a, spec, got, ok, want)
	}
}

func TestHeaderValue(t *testing.T) {
	t.Parallel()
	user := identity.SourceSpec{Header: "X-User-Id"}
	list := identity.SourceSpec{Header: "x-user-id", Commas: true}
	tests := []struct {
		name string
		spec identity.SourceSpec
		in   string
		want string
	}{
		{"plain", user, "alice", "alice"},
		{"spaces around", user, " alice\t", "alice"},
		{"B004 empty", user, "", ""},
		{"spaces only", user, "  ", ""},
		{"two lines, as Envoy joins them", user, "alice,bob", ""},
		{"the same twice", user, "alice,alice", ""},
		{"trailing comma", user, "alice,", ""},
		{"two lines, commas", list, "alice,bob", "alice,bob"},
		{"one joined line, commas", list, "alice , bob", "alice,bob"},
		{"empty lines, commas", list, ", alice,, bob,", "alice,bob"},
		{"nothing but commas", list, ", ,", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			checkValue(t, test.spec, &identity.Attributes{Headers: map[string]string{"x-user-id": test.in}}, test.want)
		})
	}
	t.Run("B004 absent", func(t *testing.T) {
		t.Parallel()
		checkValue(t, user, &identity.Attributes{}, "")
	})
}

func TestBearerValue(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, want string }{
		{"Bearer abc.def-ghi_~+/=", "abc.def-ghi_~+/="},
		{"bearer abc", "abc"},
		{"BEARER   abc", "abc"},
		{"  Bearer \t abc ", "abc"},
		{"Bearer\tabc", "abc"},
		{"", ""},
		{"Bearer", ""},
		{"Bearer ", ""},
		{"Bearerabc", ""},
		{"abc", ""},
		{"Basic abc", ""},
		{"Bearer abc def", ""},
		{"Bearer abc\tdef", ""},
		{"Bearer abc,def", ""},
		{"Bearer abc,Bearer def", ""},
		{"Basic abc,Bearer def", ""},
	}
	for _, test := range tests {
		a := &identity.Attributes{Headers: map[string]string{"authorization": test.in}}
		checkValue(t, identity.SourceSpec{Bearer: true}, a, test.want)
	}
}

func TestCookieValue(t *testing.T) {
	t.Parallel()
	sid := identity.SourceSpec{Cookie: "sid"}
	list := identity.SourceSpec{Cookie: "sid", Commas: true}
	tests := []struct {
		name string
		spec identity.SourceSpec
		in   string
		want string
	}{
		{"only one", sid, "sid=abc", "abc"},
		{"among others", sid, "a=1; sid=abc; b=2", "abc"},
		{"no spaces", sid, "a=1;sid=abc;b=2", "abc"},
		{"many spaces", sid, " a=1 ;\t sid = abc ; ", "abc"},
		{"quoted", sid, `sid="abc"`, "abc"},
		{"equals signs", sid, "sid=a=b==", "a=b=="},
		{"another line after it", sid, "a=1,sid=abc; b=2", "abc"},
		{"empty header", sid, "", ""},
		{"absent", sid, "a=1", ""},
		{"empty", sid, "sid=", ""},
		{"empty quoted", sid, `sid=""`, ""},
		{"without a value", sid, "sid", ""},
		{"name in another case", sid, "SID=abc", ""},
		{"longer names", sid, "sid2=abc; xsid=abc", ""},
		{"in a value", sid, "a=sid=abc", ""},
		{"twice", sid, "sid=abc; sid=def", ""},
		{"the same twice", sid, "sid=abc; sid=abc", ""},
		{"twice, once empty", sid, "sid; sid=abc", ""},
		{"two lines, as Envoy joins them", sid, "sid=abc,sid=def", ""},
		{"two lines, hidden behind another", sid, "sid=abc; a=1,sid=def", ""},
		{"comma", sid, "sid=abc,def", ""},
		{"comma, commas", list, "sid=abc, def; a=1", "abc,def"},
		{"twice, commas", list, "sid=abc; sid=def", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			checkValue(t, test.spec, &identity.Attributes{Headers: map[string]string{"cookie": test.in}}, test.want)
		})
	}
}

func TestQueryValue(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, path, want string
	}{
		{"only one", "/a?key=abc", "abc"},
		{"among others", "/a?x=1&key=abc&y=2", "abc"},
		{"decoded", "/a?%6bey=a%2Bb+c%20d", "a+b c d"},
		{"equals sign", "/a?key=a=b", "a=b"},
		{"question mark", "/a?key=a?b", "a?b"},
		{"semicolon in it", "/a?key=a;b", "a;b"},
		{"after a semicolon", "/a?x=1;key=abc", "abc"},
		{"before a fragment", "/a?key=abc#key=def", "abc"},
		{"no query", "/a", ""},
		{"in the path", "/key=abc", ""},
		{"absent", "/a?x=1", ""},
		{"empty", "/a?key=", ""},
		{"without a value", "/a?key", ""},
		{"name in another case", "/a?KEY=abc", ""},
		{"twice", "/a?key=abc&key=def", ""},
		{"twice, encoded once", "/a?key=abc&k%65y=def", ""},
		{"twice, by a semicolon", "/a?key=abc;key=def", ""},
		{"cannot be decoded", "/a?key=%zz", ""},
		{"comma", "/a?key=a,b", ""},
		{"encoded comma", "/a?key=a%2Cb", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			checkValue(t, identity.SourceSpec{Query: "key"}, &identity.Attributes{Path: test.path}, test.want)
		})
	}
}

func TestClaimValue(t *testing.T) {
	t.Parallel()
	payloads := map[string]any{
		"b": map[string]any{"sub": "second", "org": map[string]any{"id": "acme", "name": nil}, "only_b": "yes"},
		"a": map[string]any{
			"sub": "first", "n": float64(42), "minus": float64(-7), "half": 0.5, "big": float64(1 << 53), "nan": math.NaN(), "inf": math.Inf(1),
			"yes": true, "null": nil, "list": []any{"x"}, "map": map[string]any{"x": "y"}, "empty": "",
			"https://example.com/org": "namespaced",
		},
		"failed_status": "text, not a payload",
	}
	tests := []struct {
		name string
		spec identity.SourceSpec
		want string
	}{
		{"the first provider by name", identity.SourceSpec{Claim: "sub"}, "first"},
		{"the first that has it", identity.SourceSpec{Claim: "only_b"}, "yes"},
		{"named provider", identity.SourceSpec{Claim: "sub", Provider: "b"}, "second"},
		{"named provider without it", identity.SourceSpec{Claim: "only_b", Provider: "a"}, ""},
		{"unknown provider", identity.SourceSpec{Claim: "sub", Provider: "c"}, ""},
		{"provider that is no payload", identity.SourceSpec{Claim: "sub", Provider: "failed_status"}, ""},
		{"dotted", identity.SourceSpec{Claim: "org.id"}, "acme"},
		{"dots of its own", identity.SourceSpec{Claim: "https://example.com/org"}, "namespaced"},
		{"whole number", identity.SourceSpec{Claim: "n"}, "42"},
		{"negative number", identity.SourceSpec{Claim: "minus"}, "-7"},
		{"fraction", identity.SourceSpec{Claim: "half"}, ""},
		{"number that is not exact", identity.SourceSpec{Claim: "big"}, ""},
		{"not a number", identity.SourceSpec{Claim: "nan"}, ""},
		{"infinity", identity.SourceSpec{Claim: "inf"}, ""},
		{"bool", identity.SourceSpec{Claim: "yes"}, ""},
		{"null", identity.SourceSpec{Claim: "null"}, ""},
		{"list", identity.SourceSpec{Claim: "list"}, ""},
		{"map", identity.SourceSpec{Claim: "map"}, ""},
		{"empty", identity.SourceSpec{Claim: "empty"}, ""},
		{"absent", identity.SourceSpec{Claim: "org.x.y"}, ""},
		{"past text", identity.SourceSpec{Claim: "sub.x"}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a := &identity.Attributes{Metadata: map[string]map[string]any{"envoy.filters.http.jwt_authn": payloads}}
			checkValue(t, test.spec, a, test.want)
			checkValue(t, test.spec, &identity.Attributes{}, "")
		})
	}
}

// B060: a refreshed token is another token of the same caller.
func TestClaimOutlivesToken(t *testing.T) {
	t.Parallel()
	sub := identity.SourceSpec{Claim: "sub"}
	for issued := range 3 {
		payload := map[string]any{"sub": "u", "iat": float64(issued)}
		a := &identity.Attributes{Metadata: map[string]map[string]any{"envoy.filters.http.jwt_authn": {"jwt": payload}}}
		checkValue(t, sub, a, "u")
	}
}

func TestMetadataContextAndPrincipal(t *testing.T) {
	t.Parallel()
	a := &identity.Attributes{
		Principal: "spiffe://td/client",
		Context:   map[string]string{"tier": "gold", "empty": ""},
		Metadata:  map[string]map[string]any{"envoy.lb": {"canary": "yes", "a": map[string]any{"b": float64(1)}}},
	}
	checkValue(t, identity.SourceSpec{Principal: true}, a, "spiffe://td/client")
	checkValue(t, identity.SourceSpec{Principal: true}, &identity.Attributes{}, "")
	checkValue(t, identity.SourceSpec{Context: "tier"}, a, "gold")
	checkValue(t, identity.SourceSpec{Context: "empty"}, a, "")
	checkValue(t, identity.SourceSpec{Context: "absent"}, a, "")
	checkValue(t, identity.SourceSpec{Metadata: "envoy.lb.canary"}, a, "yes")
	checkValue(t, identity.SourceSpec{Metadata: "envoy.lb.a.b"}, a, "1")
	checkValue(t, identity.SourceSpec{Metadata: "envoy.lb.a"}, a, "")
	checkValue(t, identity.SourceSpec{Metadata: "envoy.other.a"}, a, "")
}

// What a client can write is believed from a trusted peer only, or always.
func TestBelief(t *testing.T) {
	t.Parallel()
	a := &identity.Attributes{
		Path:      "/?key=v",
		Headers:   map[string]string{"x-user-id": "v", "authorization": "Bearer v", "cookie": "sid=v"},
		Principal: "v",
		Context:   map[string]string{"key": "v"},
		Metadata:  map[string]map[string]any{"envoy.filters.http.jwt_authn": {"p": map[string]any{"sub": "v"}}},
	}
	tests := []struct {
		name       string
		spec       identity.SourceSpec
		needsTrust bool
		hash       bool
	}{
		{"header", identity.SourceSpec{Header: "x-user-id"}, true, false},
		{"header, hash", identity.SourceSpec{Header: "x-user-id", Hash: true}, true, true},
		{"header of credentials", identity.SourceSpec{Header: "Authorization"}, true, true},
		{"bearer", identity.SourceSpec{Bearer: true}, true, true},
		{"cookie", identity.SourceSpec{Cookie: "sid"}, true, true},
		{"query", identity.SourceSpec{Query: "key"}, true, false},
		{"claim", identity.SourceSpec{Claim: "sub"}, false, false},
		{"metadata", identity.SourceSpec{Metadata: "envoy.filters.http.jwt_authn.p.sub"}, false, false},
		{"context", identity.SourceSpec{Context: "key"}, false, false},
		{"principal", identity.SourceSpec{Principal: true}, false, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := mustSource(t, test.spec)
			if _, ok := s.Value(a, identity.Identity{}); ok == test.needsTrust {
				t.Errorf("Value(untrusted) = %v, want %v", ok, !test.needsTrust)
			}
			if s.NeedsTrust() != test.needsTrust || s.Hash() != test.hash {
				t.Errorf("NeedsTrust(), Hash() = %v, %v, want %v, %v", s.NeedsTrust(), s.Hash(), test.needsTrust, test.hash)
			}
			if _, ok := s.Value(a, identity.Identity{Trusted: true}); !ok {
				t.Errorf("Value(trusted) = %v, want true", ok)
			}
			test.spec.Always = true
			if _, ok := mustSource(t, test.spec).Value(a, identity.Identity{}); !ok {
				t.Errorf("Value(untrusted, always) = %v, want true", ok)
			}
		})
	}
	if got, ok := (identity.Source{}).Value(a, identity.Identity{Trusted: true}); ok {
		t.Errorf("zero Source's Value() = %q, want none", got)
	}
}

func TestNewSourceFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		spec identity.SourceSpec
		want []string // fields
	}{
		{"nothing", identity.SourceSpec{Always: true}, []string{""}},
		{"two", identity.SourceSpec{Header: "a", Bearer: true}, []string{""}},
		{"header", identity.SourceSpec{Header: "x user"}, []string{"header"}},
		{"pseudo header", identity.SourceSpec{Header: ":path"}, []string{"header"}},
		{"cookie", identity.SourceSpec{Cookie: "a=b"}, []string{"cookie"}},
		{"claim", identity.SourceSpec{Claim: "org..id"}, []string{"claim"}},
		{"metadata without a path", identity.SourceSpec{Metadata: "filter"}, []string{"metadata"}},
		{"provider without claim", identity.SourceSpec{Header: ":", Provider: "p"}, []string{"provider", "header"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := identity.NewSource(test.spec)
			if got := faultFields(err); !cmp.Equal(got, test.want) {
				t.Errorf("NewSource(%+v) = %v, want faults at %q", test.spec, err, test.want)
			}
		})
	}
}
