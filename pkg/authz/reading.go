package authz

import (
	"net/netip"
	"time"
	"unicode/utf8"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-mesh/sluice/pkg/identity"
	"github.com/sluice-mesh/sluice/pkg/response"
	"github.com/sluice-mesh/sluice/pkg/wire"
)

// A reading is a CheckRequest that is read off the wire as far as attributes
// go: what generated code makes of the rest, and of headers, costs more than
// the decision. It reads what Envoy writes. Whatever is out of the ordinary is
// left to generated code, which each method says by false: fields of another
// kind, a message twice that would have to be merged, a text that is not UTF-8,
// raw header lines. The numbers are those of the fields.
type reading struct {
	attrs identity.Attributes
	// Once each of these messages was there.
	address, at, metadata bool
	space                 response.Space // of the answer
}

func newReading() any {
	return &reading{attrs: identity.Attributes{Headers: map[string]string{}, Context: map[string]string{}}}
}

// manyHeaders is the most whose map is kept for another request.
const manyHeaders = 100

// reset makes r ready for another request, and says whether it is worth
// keeping.
func (r *reading) reset() bool {
	headers, context := r.attrs.Headers, r.attrs.Context
	if len(headers) > manyHeaders || len(context) > manyHeaders {
		return false
	}
	clear(headers)
	clear(context)
	*r = reading{attrs: identity.Attributes{Headers: headers, Context: context}}
	return true
}

func (r *reading) read(request string) bool { return wire.Each(request, r.request) }

// request reads a field of CheckRequest.
func (r *reading) request(f wire.Field) bool {
	return f.Number != 1 || f.Message(r.attribute)
}

// attribute reads a field of AttributeContext.
func (r *reading) attribute(f wire.Field) bool {
	switch f.Number {
	case 1:
		return f.Message(r.peer)
	case 4:
		return f.Message(r.requested)
	case 10:
		return entry(f, r.attrs.Context, anyKey)
	case 11:
		return r.filters(f)
	default:
		return true
	}
}

// peer reads a field of Peer.
func (r *reading) peer(f wire.Field) bool {
	switch f.Number {
	case 1:
		return f.Message(r.peerAddress)
	case 4:
		return f.Set(&r.attrs.Principal)
	default:
		return true
	}
}

// peerAddress reads a field of Address, which has only one.
func (r *reading) peerAddress(f wire.Field) bool {
	if r.address {
		return false
	}
	r.address = true
	switch f.Number {
	case 1:
		var text string
		if !f.Message(func(f wire.Field) bool { return f.Number != 2 || f.Set(&text) }) {
			return false
		}
		if a, err := netip.ParseAddr(text); err == nil {
			r.attrs.Source = a
		}
		return true
	case 2:
		r.attrs.Pipe = true
		return f.Kind == wire.Bytes
	default:
		return false
	}
}

// requested reads a field of Request.
func (r *reading) requested(f wire.Field) bool {
	switch f.Number {
	case 1:
		return r.time(f)
	case 2:
		return f.Message(r.http)
	default:
		return true
	}
}

func (r *reading) time(f wire.Field) bool {
	if r.at {
		return false
	}
	r.at = true
	var seconds, nanos uint64
	ok := f.Message(func(f wire.Field) bool {
		switch f.Number {
		case 1:
			seconds = f.Value
		case 2:
			nanos = f.Value
		}
		return f.Kind == wire.Varint
	})
	r.attrs.Time = time.Unix(int64(seconds), int64(int32(nanos))).UTC()
	return ok
}

// http reads a field of HttpRequest.
func (r *reading) http(f wire.Field) bool {
	switch f.Number {
	case 1:
		return f.Set(&r.attrs.ID)
	case 2:
		return f.Set(&r.attrs.Method)
	case 3:
		return entry(f, r.attrs.Headers, isLower)
	case 4:
		return f.Set(&r.attrs.Path)
	case 5:
		return f.Set(&r.attrs.Host)
	case 6:
		return f.Set(&r.attrs.Scheme)
	case 9:
		r.attrs.Size = int64(f.Value)
		return f.Kind == wire.Varint
	case 10:
		return f.Set(&r.attrs.Protocol)
	case 13: // raw lines, which have to be joined
		return false
	default:
		return true
	}
}

// entry reads an entry of a map of texts.
func entry(f wire.Field, into map[string]string, wanted func(key string) bool) bool {
	key, value, ok := f.Pair()
	if !ok || !wanted(key) {
		return false
	}
	into[key] = value
	return true
}

func anyKey(string) bool { return true }

// isLower says that a header's name is as Envoy writes it. Others have to be
// made so, and joined.
func isLower(name string) bool {
	for i := range len(name) {
		if c := name[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return true
}

// filters reads the dynamic metadata. Where there is some, generated code does
// that part: values of every kind may be in it.
func (r *reading) filters(f wire.Field) bool {
	if f.Kind != wire.Bytes || r.metadata {
		return false
	}
	r.metadata = true
	if f.Text == "" {
		return true
	}
	var m corev3.Metadata
	if proto.Unmarshal([]byte(f.Text), &m) != nil {
		return false
	}
	r.attrs.Metadata = filterMetadata(&m)
	return true
}
