package explain_test

import (
	"net/netip"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/sluice-mesh/sluice/internal/explain"
	"github.com/sluice-mesh/sluice/pkg/descriptors"
	"github.com/sluice-mesh/sluice/pkg/identity"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// match returns what set makes of r, as a door would ask.
func match(t *testing.T, set *policy.Set, r explain.Request) policy.Match {
	t.Helper()
	if r.Descriptors != nil {
		return policy.Match{Applied: set.Domain("edge").ForDescriptor(descriptor(r.Descriptors[0]))}
	}
	a := &identity.Attributes{Method: "GET", Path: r.Path, Host: r.Host, Headers: map[string]string{}}
	if r.Peer != "" {
		a.Source = netip.MustParseAddr(r.Peer)
	}
	for _, h := range r.Headers {
		a.Headers[strings.ToLower(h.Name)] = h.Value
	}
	p := set.ForRequests("")
	return p.ForRequest(policy.Request{Attributes: a, Identity: p.Edge.Identify(a)})
}

func descriptor(d explain.Descriptor) descriptors.Descriptor {
	var entries descriptors.Descriptor
	for _, e := range d {
		entries = append(entries, descriptors.Entry(e))
	}
	return entries
}

func checkPrintable(t *testing.T, s string) {
	t.Helper()
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
		t.Errorf("the explanation is %q, want it printable", s)
	}
}
