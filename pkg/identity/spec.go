package identity

import "net/netip"

// EdgeSpec is a policy's trust: whose word on a client's address is taken.
// The zero value trusts nobody: the peer is the client. Only one of Proxies,
// Hops and Stamp may be set.
type EdgeSpec struct {
	Proxies []netip.Prefix
	Hops    int
	Stamp   string // a lower-case name in Attributes.Stamps
	// Header is the forwarded header that is walked. "" means
	// x-forwarded-for.
	Header string
	// IPv4Prefix and IPv6Prefix say how many leading bits make one caller. 0
	// means 32 and 64.
	IPv4Prefix, IPv6Prefix int
}

// SourceSpec says where an identity's value is found. Exactly one of Header,
// Claim, Bearer, Cookie, Context and Principal is set.
type SourceSpec struct {
	Header    string
	Claim     string // a dotted path in jwt_authn's payload
	Provider  string // with Claim: the payload's name, where there are several
	Bearer    bool   // the token of an Authorization: Bearer header
	Cookie    string
	Context   string // a key of context_extensions
	Principal bool   // the peer's certificate
	// Always believes the value whoever sent it.
	Always bool
	// Commas takes a value of several lines or with a comma as it is, where
	// otherwise it is a missing one.
	Commas bool
	// Hash keeps a keyed hash of the value in the key, never the value.
	Hash bool
}
