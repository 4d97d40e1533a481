package rls

import (
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/sluice-mesh/sluice/pkg/wire"
)

// A reading is a RateLimitRequest that is read off the wire into messages that
// are used again. It reads plain entries and hits. All else is left to
// generated code, which each method says by false: limits that come with a
// descriptor, hits of its own, fields of another kind, texts that are not
// UTF-8. The numbers are those of the fields.
type reading struct {
	req         rlsv3.RateLimitRequest
	descriptors []*commonv3.RateLimitDescriptor       // as many as there ever were
	entries     []*commonv3.RateLimitDescriptor_Entry // and of these
	used        int                                   // entries
	scratch
}

func newReading() any { return &reading{} }

// few is the most descriptors, and entries, that are kept for another request.
const few = 64

// reset forgets the request, and says whether r is worth keeping.
func (r *reading) reset() bool {
	r.scratch.reset()
	for _, d := range r.req.GetDescriptors() {
		clear(d.GetEntries())
		d.Entries = d.Entries[:0]
	}
	for _, e := range r.entries[:r.used] {
		e.Key, e.Value = "", ""
	}
	r.req.Domain, r.req.Descriptors, r.req.HitsAddend, r.used = "", r.req.Descriptors[:0], 0, 0
	return len(r.descriptors) <= few && len(r.entries) <= few
}

func (r *reading) read(request string) bool { return wire.Each(request, r.request) }

// request reads a field of RateLimitRequest.
func (r *reading) request(f wire.Field) bool {
	switch f.Number {
	case 1:
		return f.Set(&r.req.Domain)
	case 2:
		d := r.descriptor()
		r.req.Descriptors = append(r.req.Descriptors, d)
		return f.Message(func(f wire.Field) bool { return f.Number == 1 && r.entry(d, f) })
	case 3:
		r.req.HitsAddend = uint32(f.Value)
		return f.Kind == wire.Varint
	default:
		return true
	}
}

// entry reads an entry of d.
func (r *reading) entry(d *commonv3.RateLimitDescriptor, f wire.Field) bool {
	e := r.newEntry()
	d.Entries = append(d.Entries, e)
	return f.Message(func(f wire.Field) bool {
		switch f.Number {
		case 1:
			return f.Set(&e.Key)
		case 2:
			return f.Set(&e.Value)
		default:
			return true
		}
	})
}

// descriptor returns the next one, which is empty.
func (r *reading) descriptor() *commonv3.RateLimitDescriptor {
	if n := len(r.req.GetDescriptors()); n < len(r.descriptors) {
		return r.descriptors[n]
	}
	d := &commonv3.RateLimitDescriptor{}
	r.descriptors = append(r.descriptors, d)
	return d
}

func (r *reading) newEntry() *commonv3.RateLimitDescriptor_Entry {
	if r.used == len(r.entries) {
		r.entries = append(r.entries, &commonv3.RateLimitDescriptor_Entry{})
	}
	r.used++
	return r.entries[r.used-1]
}
