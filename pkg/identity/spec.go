package identity

import (
	"fmt"
	"net/netip"
	"strings"
)

// EdgeSpec is a policy's trust: whose word on a client's address is taken.
// The zero value trusts nobody: the peer is the client. Only one of Proxies,
// Hops and Stamp may be set.
type EdgeSpec struct {
	Proxies []netip.Prefix
	Hops    int
	Stamp   string // a name in Attributes.Stamps, in any case
	// Header is the forwarded header that is walked: x-forwarded-for,
	// x-real-ip, forwarded or x-envoy-external-address. "" means
	// x-forwarded-for.
	Header string
	// IPv4Prefix and IPv6Prefix say how many leading bits make one caller. 0
	// means 32 and 64.
	IPv4Prefix, IPv6Prefix int
}

// SourceSpec says where an identity's value is found. Exactly one of Header,
// Claim, Bearer, Cookie, Query, Metadata, Context and Principal is set.
type SourceSpec struct {
	Header string // in any case
	Claim  string // a dotted path in jwt_authn's payload
	// Provider, with Claim, is the payload's name in jwt_authn's metadata. ""
	// means the first by name that has the claim.
	Provider string
	Bearer   bool   // the token of an Authorization: Bearer header
	Cookie   string // a cookie's name
	Query    string // a query parameter's name, decoded
	Metadata string // a filter's name, a dot, and a dotted path in its metadata
	Context  string // a key of context_extensions
	// Principal is the name in the peer's certificate.
	Principal bool
	// Always believes the value whoever sent it. Claims, metadata, context
	// and principals are believed without.
	Always bool
	// Commas takes a value of several lines or with a comma, where otherwise
	// it is a missing one. Several lines and one joined line are one value.
	Commas bool
	// Hash keeps a keyed hash of the value in the key, never the value.
	Hash bool
}

// A SpecError is one thing wrong in a spec.
type SpecError struct {
	// Field is the policy file's name for it: hops, proxies[1]. It is empty
	// where the spec as a whole is wrong.
	Field string
	Found string
	Want  string
}

// Error says what was found and what was wanted.
func (e SpecError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("found %s, want %s", e.Found, e.Want)
	}
	return fmt.Sprintf("%s: found %s, want %s", e.Field, e.Found, e.Want)
}

// SpecErrors are all that is wrong in a spec, and at least one. NewEdge,
// NewSource and NewNetworks return no other errors.
type SpecErrors []SpecError

// Error joins the errors by a semicolon.
func (es SpecErrors) Error() string {
	texts := make([]string, len(es))
	for i, e := range es {
		texts[i] = e.Error()
	}
	return strings.Join(texts, "; ")
}

// or returns es as an error, nil if there are none.
func (es SpecErrors) or() error {
	if len(es) == 0 {
		return nil
	}
	return es
}
