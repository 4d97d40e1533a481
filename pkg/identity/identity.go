// Package identity finds out who is calling: the client's address as the
// trusted edge saw it, and the names that callers are told apart by.
//
// It takes attributes, what the proxy told us of a request, and knows nothing
// of rules, keys or stores. Nothing in it trusts what a client can write,
// unless the policy's author said so.
package identity

import (
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// Attributes are what the proxy told us of one request. They are read only
// once made, and may share memory with the message they came from.
type Attributes struct {
	Method string
	// Path is the target as it came, query included, nothing decoded.
	Path string
	Host string
	// Scheme is http or https, Protocol such as HTTP/1.1. Empty ones are not
	// known.
	Scheme, Protocol string
	// ID is the proxy's own name for the request.
	ID string
	// Size is the length of the body in bytes, 0 or below where it is not
	// known.
	Size int64
	// Time is when the request came. The zero Time is not known.
	Time time.Time
	// Headers holds each header by its lower-case name; lines of one name are
	// joined by ",". Names with a leading colon may be there.
	Headers map[string]string
	// Source is the address of the direct peer, without its port. The zero
	// Addr is a peer without an address.
	Source netip.Addr
	// Pipe says that the peer came through a Unix socket.
	Pipe bool
	// Principal is the peer's name in its client certificate, if it had one.
	Principal string
	// Context is what the route said of itself (context_extensions).
	Context map[string]string
	// Metadata is the request's dynamic metadata by filter name, as far as
	// Envoy was told to send it: maps, lists, text, float64, bool and nil.
	Metadata map[string]map[string]any
	// Stamps is what Envoy itself said of the request in the metadata of its
	// call to us (initial_metadata), by lower-case name.
	Stamps map[string]string
}

// GRPC says that the client speaks gRPC, or one of the kinds that a proxy turns
// into it, as far as its content type tells.
func (a *Attributes) GRPC() bool {
	const prefix = "application/grpc"
	t := a.Headers["content-type"]
	return len(t) >= len(prefix) && strings.EqualFold(t[:len(prefix)], prefix)
}

// An Identity is who is calling, with the evidence.
type Identity struct {
	// Client is the caller's address, unmapped and without a zone, not yet
	// masked. The zero Addr is a missing one.
	Client netip.Addr
	// Trusted says that the peer is one whose headers are believed.
	Trusted bool
	// Evidence says where Client was found.
	Evidence Evidence
}

// Evidence says where a client's address was found.
type Evidence uint8

// Where an address was found. The zero value is nowhere.
const (
	Missing   Evidence = iota // there was none to be had
	FromPeer                  // the direct peer
	FromChain                 // a forwarded header, as far as the trusted edge vouches for it
	FromStamp                 // Envoy's own word
)

// String returns the word for e in an explanation.
func (e Evidence) String() string {
	switch e {
	case Missing:
		return "missing"
	case FromPeer:
		return "peer"
	case FromChain:
		return "chain"
	case FromStamp:
		return "stamp"
	default:
		return fmt.Sprintf("evidence(%d)", uint8(e))
	}
}
