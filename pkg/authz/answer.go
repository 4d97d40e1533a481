package authz

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/sluice-mesh/sluice/pkg/response"
	"github.com/sluice-mesh/sluice/pkg/wire"
)

// appendResponse appends the CheckResponse that says r in Envoy's words. Envoy
// allows by the status code alone: 0. The numbers are those of the fields.
func appendResponse(b []byte, r *response.Response) []byte {
	b, status := wire.Begin(b, 1)
	b = wire.AppendUint(b, 1, uint64(r.Code))
	b = wire.End(b, status)
	if r.Allowed {
		b = appendOK(b, r)
	} else {
		b = appendDenied(b, r)
	}
	return appendFields(b, r.Metadata)
}

// appendOK appends the ok_response.
func appendOK(b []byte, r *response.Response) []byte {
	b, ok := wire.Begin(b, 3)
	b = appendOptions(b, 6, r.Headers)
	return wire.End(b, ok)
}

// appendDenied appends the denied_response.
func appendDenied(b []byte, r *response.Response) []byte {
	b, denied := wire.Begin(b, 2)
	b, status := wire.Begin(b, 1)
	b = wire.AppendUint(b, 1, uint64(r.Status))
	b = wire.End(b, status)
	b = appendOptions(b, 2, r.Headers)
	b = wire.AppendString(b, 3, r.Body)
	return wire.End(b, denied)
}

// appendOptions appends headers, each a field of that number, so that ours
// replace an upstream's of the same name, except those that add to it.
// The older field append stays unset: a denial would lose the header.
func appendOptions(b []byte, number int, hs []response.Header) []byte {
	for _, h := range hs {
		action := corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD
		if h.Adds() {
			action = corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD
		}
		var option, header int
		b, option = wire.Begin(b, number)
		b, header = wire.Begin(b, 1)
		b = wire.AppendString(b, 1, h.Name)
		b = wire.AppendString(b, 2, h.Value)
		b = wire.End(b, header)
		b = wire.AppendUint(b, 3, uint64(action))
		b = wire.End(b, option)
	}
	return b
}

// appendFields appends what is said of a decision as dynamic metadata: a
// Struct of texts.
func appendFields(b []byte, facts []response.Header) []byte {
	b, dynamic := wire.Begin(b, 4)
	for _, f := range facts {
		b = wire.AppendFact(b, f.Name, f.Value)
	}
	return wire.End(b, dynamic)
}
