package identity_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/identity"
)

// hops writes the hops of a trace as text and verdict, the client marked.
func hops(t identity.Trace) []string {
	var all []string
	for i, h := range t.Hops {
		text := h.Text + " " + h.Verdict.String()
		if i == t.Client {
			text += " client"
		}
		all = append(all, text)
	}
	return all
}

func TestTrace(t *testing.T) {
	t.Parallel()
	proxies := identity.EdgeSpec{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	for _, tt := range []struct {
		name string
		spec identity.EdgeSpec
		peer string
		xff  string
		want []string
	}{
		{"nobody is trusted", identity.EdgeSpec{}, "10.0.0.1", "1.1.1.1, 2.2.2.2", []string{" untrusted client", " 2.2.2.2 unread", "1.1.1.1 unread"}},
		{"a chain", proxies, "10.0.0.1", "1.1.1.1,2.2.2.2,10.0.0.2", []string{" trusted", "10.0.0.2 trusted", "2.2.2.2 untrusted client", "1.1.1.1 unread"}},
		{"all are trusted", proxies, "10.0.0.1", "10.0.0.3,10.0.0.2", []string{" trusted", "10.0.0.2 trusted", "10.0.0.3 trusted client"}},
		{"garbage", proxies, "10.0.0.1", "1.1.1.1,x,10.0.0.2", []string{" trusted", "10.0.0.2 trusted client", "x garbage", "1.1.1.1 unread"}},
		{"garbage at once", proxies, "10.0.0.1", "x", []string{" trusted client", "x garbage"}},
		{"no header", proxies, "10.0.0.1", "", []string{" trusted client"}},
		{"an untrusted peer", proxies, "9.9.9.9", "1.1.1.1", []string{" untrusted client", "1.1.1.1 unread"}},
		{"hops", identity.EdgeSpec{Hops: 2}, "9.9.9.9", "1.1.1.1,2.2.2.2,3.3.3.3", []string{" counted", "3.3.3.3 counted", "2.2.2.2 counted client", "1.1.1.1 unread"}},
		{"hops, the peer again", identity.EdgeSpec{Hops: 1}, "9.9.9.9", "2.2.2.2,9.9.9.9", []string{" counted", "9.9.9.9 repeated", "2.2.2.2 counted client"}},
		{"hops, too short", identity.EdgeSpec{Hops: 3}, "9.9.9.9", "2.2.2.2", []string{" counted client", "2.2.2.2 counted"}},
		{"hops, garbage", identity.EdgeSpec{Hops: 1}, "9.9.9.9", "2.2.2.2,x", []string{" counted client", "x garbage", "2.2.2.2 unread"}},
		{"no peer", identity.EdgeSpec{}, "", "1.1.1.1", []string{"1.1.1.1 unread"}},
	} {
		e := mustEdge(t, tt.spec)
		a := &identity.Attributes{}
		if tt.peer != "" {
			a.Source = netip.MustParseAddr(tt.peer)
		}
		if tt.xff != "" {
			a.Headers = map[string]string{"x-forwarded-for": tt.xff}
		}
		got := e.Trace(a)
		if diff := cmp.Diff(tt.want, hops(got)); diff != "" {
			t.Errorf("%s: Trace(%s, %q) -want +got:\n%s", tt.name, tt.peer, tt.xff, diff)
		}
		if id := e.Identify(a); got.Identity != id {
			t.Errorf("%s: Trace(%s, %q) = %+v, want what Identify says, %+v", tt.name, tt.peer, tt.xff, got.Identity, id)
		}
	}
}

func TestTraceStamp(t *testing.T) {
	t.Parallel()
	e := mustEdge(t, identity.EdgeSpec{Stamp: "x-client-ip"})
	for _, tt := range []struct {
		stamps map[string]string
		want   []string
	}{
		{map[string]string{"x-client-ip": "1.1.1.1:80"}, []string{"1.1.1.1:80 stamped client"}},
		{map[string]string{"x-client-ip": "x"}, []string{"x garbage"}},
		{nil, nil},
	} {
		got := e.Trace(&identity.Attributes{Source: netip.MustParseAddr("9.9.9.9"), Stamps: tt.stamps})
		if diff := cmp.Diff(tt.want, hops(got)); diff != "" {
			t.Errorf("Trace(%v) -want +got:\n%s", tt.stamps, diff)
		}
	}
}

func TestUnread(t *testing.T) {
	t.Parallel()
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for _, tt := range []struct {
		spec identity.EdgeSpec
		peer string
		want string
	}{
		{identity.EdgeSpec{}, "10.0.0.1", "4.4.4.4"},
		{identity.EdgeSpec{}, "4.4.4.4", "1.1.1.1"},
		{identity.EdgeSpec{Proxies: proxies}, "9.9.9.9", "4.4.4.4"},
		{identity.EdgeSpec{Proxies: proxies}, "10.0.0.1", ""},
		{identity.EdgeSpec{Proxies: proxies, Header: "x-real-ip"}, "9.9.9.9", "2.2.2.2"},
		{identity.EdgeSpec{Proxies: proxies, Header: "x-real-ip"}, "2.2.2.2", ""},
		{identity.EdgeSpec{Proxies: proxies, Header: "forwarded"}, "9.9.9.9", ""},
		{identity.EdgeSpec{Hops: 3}, "9.9.9.9", ""},
		{identity.EdgeSpec{Stamp: "s"}, "9.9.9.9", ""},
	} {
		e := mustEdge(t, tt.spec)
		a := &identity.Attributes{
			Source: netip.MustParseAddr(tt.peer), Headers: map[string]string{"x-forwarded-for": "1.1.1.1, 4.4.4.4", "x-real-ip": "2.2.2.2"},
			Stamps: map[string]string{"s": "3.3.3.3"},
		}
		if got := e.Unread(a, e.Identify(a)); got != tt.want {
			t.Errorf("Unread() under %+v from %s = %q, want %q", tt.spec, tt.peer, got, tt.want)
		}
	}
}

// A trace is no longer than its bound, however long the header.
func TestTraceIsBounded(t *testing.T) {
	t.Parallel()
	long := "1.1.1.1"
	for range 9_999 {
		long += ",10.0.0.2"
	}
	for _, proxy := range []string{"10.0.0.0/8", "127.0.0.1/32"} {
		e := mustEdge(t, identity.EdgeSpec{Proxies: []netip.Prefix{netip.MustParsePrefix(proxy)}})
		got := e.Trace(&identity.Attributes{Source: netip.MustParseAddr("10.0.0.1"), Headers: map[string]string{"x-forwarded-for": long}})
		if len(got.Hops) != 64 || got.More != 10_001-64 {
			t.Errorf("Trace of 10,000 entries past %s = %d hops and %d more, want 64 and %d", proxy, len(got.Hops), got.More, 10_001-64)
		}
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		spec  identity.SourceSpec
		attrs identity.Attributes
		value string
		why   identity.Absence
	}{
		{"there", identity.SourceSpec{Header: "x-id", Always: true}, sent("x-id", "a"), "a", identity.Present},
		{"not sent", identity.SourceSpec{Header: "x-id", Always: true}, sent("x-other", "a"), "", identity.Absent},
		{"empty", identity.SourceSpec{Header: "x-id", Always: true}, sent("x-id", " "), "", identity.Empty},
		{"two lines", identity.SourceSpec{Header: "x-id", Always: true}, sent("x-id", "a,b"), "", identity.Twice},
		{"not believed", identity.SourceSpec{Header: "x-id"}, sent("x-id", "a"), "", identity.Unbelieved},
		{"not sent, and not believed", identity.SourceSpec{Header: "x-id"}, sent("x-other", "a"), "", identity.Absent},
		{"another scheme", identity.SourceSpec{Bearer: true, Always: true}, sent("authorization", "Basic eA=="), "", identity.Unreadable},
		{"two words", identity.SourceSpec{Bearer: true, Always: true}, sent("authorization", "Bearer a b"), "", identity.Unreadable},
		{"two tokens", identity.SourceSpec{Bearer: true, Always: true}, sent("authorization", "Bearer a,Bearer b"), "", identity.Twice},
		{"no token", identity.SourceSpec{Bearer: true, Always: true}, sent("x", "a"), "", identity.Absent},
		{"two cookies", identity.SourceSpec{Cookie: "id", Always: true}, sent("cookie", "id=a; id=b"), "", identity.Twice},
		{"no such cookie", identity.SourceSpec{Cookie: "id", Always: true}, sent("cookie", "x=a"), "", identity.Absent},
		{"an empty cookie", identity.SourceSpec{Cookie: "id", Always: true}, sent("cookie", `id=""`), "", identity.Empty},
		{"two parameters", identity.SourceSpec{Query: "id", Always: true}, identity.Attributes{Path: "/?id=a&id=b"}, "", identity.Twice},
		{"a bad parameter", identity.SourceSpec{Query: "id", Always: true}, identity.Attributes{Path: "/?id=%zz"}, "", identity.Unreadable},
		{"no parameter", identity.SourceSpec{Query: "id", Always: true}, identity.Attributes{Path: "/?x"}, "", identity.Absent},
		{"an empty extension", identity.SourceSpec{Context: "id"}, identity.Attributes{Context: map[string]string{"id": ""}}, "", identity.Empty},
		{"no claim", identity.SourceSpec{Claim: "id"}, identity.Attributes{}, "", identity.Absent},
	} {
		s, err := identity.NewSource(tt.spec)
		if err != nil {
			t.Fatal(err)
		}
		value, why := s.Explain(&tt.attrs, identity.Identity{})
		if value != tt.value || why != tt.why {
			t.Errorf("%s: Explain() = %q, %v, want %q, %v", tt.name, value, why, tt.value, tt.why)
		}
	}
}

func sent(name, value string) identity.Attributes {
	return identity.Attributes{Headers: map[string]string{name: value}}
}
