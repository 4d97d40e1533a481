package rls

import (
	"fmt"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// A Manner is how envoyproxy/ratelimit answers, as far as it has settings for
// that. The zero value answers with codes and statuses alone.
type Manner struct {
	// Headers are for the client; nil for none.
	Headers *HeaderNames
	// Metadata repeats the request as dynamic metadata, with what the rules
	// say that let it pass.
	Metadata bool
	// Shadow lets every request pass, whatever its statuses say.
	Shadow bool
	// Quota makes every descriptor one of a quota.
	Quota bool
}

// HeaderNames are the names of the headers that tell a client how it stands.
// None may be empty.
type HeaderNames struct{ Limit, Remaining, Reset string }

func (m *Manner) answer(a answering, req *rlsv3.RateLimitRequest) *rlsv3.RateLimitResponse {
	resp := &rlsv3.RateLimitResponse{
		OverallCode: rlsv3.RateLimitResponse_OK,
		Statuses:    a.statuses(len(req.GetDescriptors())),
	}
	if !a.Allowed && !m.Shadow {
		resp.OverallCode = rlsv3.RateLimitResponse_OVER_LIMIT
	}
	if m.Headers != nil {
		resp.ResponseHeadersToAdd = m.Headers.of(resp.GetStatuses())
	}
	if m.Metadata {
		resp.DynamicMetadata = repeated(req)
		if passed := a.passed(); passed != nil {
			resp.DynamicMetadata.Fields["metadata"] = structpb.NewStructValue(passed)
		}
	}
	return resp
}

// of tells of the descriptor with the least left; of the last that is over its
// limit, if one is.
func (h *HeaderNames) of(statuses []*rlsv3.RateLimitResponse_DescriptorStatus) []*corev3.HeaderValue {
	var least *rlsv3.RateLimitResponse_DescriptorStatus
	for _, s := range statuses {
		over := s.GetCode() == rlsv3.RateLimitResponse_OVER_LIMIT
		switch {
		case s.GetCurrentLimit() == nil:
		case over, least == nil, least.GetCode() == rlsv3.RateLimitResponse_OK && s.GetLimitRemaining() < least.GetLimitRemaining():
			least = s
		}
	}
	if least == nil {
		return nil
	}
	return []*corev3.HeaderValue{
		{Key: h.Limit, Value: strconv.FormatUint(uint64(least.GetCurrentLimit().GetRequestsPerUnit()), 10)},
		{Key: h.Remaining, Value: strconv.FormatUint(uint64(least.GetLimitRemaining()), 10)},
		{Key: h.Reset, Value: strconv.FormatInt(least.GetDurationUntilReset().GetSeconds(), 10)},
	}
}

// repeated is the request as metadata.
func repeated(req *rlsv3.RateLimitRequest) *structpb.Struct {
	descriptors := make([]*structpb.Value, 0, len(req.GetDescriptors()))
	for _, d := range req.GetDescriptors() {
		descriptors = append(descriptors, structpb.NewStructValue(repeatedDescriptor(d)))
	}
	s := &structpb.Struct{Fields: map[string]*structpb.Value{
		"domain":      structpb.NewStringValue(req.GetDomain()),
		"descriptors": structpb.NewListValue(&structpb.ListValue{Values: descriptors}),
	}}
	if n := req.GetHitsAddend(); n != 0 {
		s.Fields["hitsAddend"] = structpb.NewNumberValue(float64(n))
	}
	return s
}

func repeatedDescriptor(d *commonv3.RateLimitDescriptor) *structpb.Struct {
	entries := make([]*structpb.Value, 0, len(d.GetEntries()))
	for _, e := range d.GetEntries() {
		entries = append(entries, structpb.NewStringValue(e.GetKey()+"="+e.GetValue()))
	}
	s := &structpb.Struct{Fields: map[string]*structpb.Value{
		"entries": structpb.NewListValue(&structpb.ListValue{Values: entries}),
	}}
	if l := d.GetLimit(); l != nil {
		s.Fields["limit"] = structpb.NewStringValue(fmt.Sprintf("requests_per_unit:%d unit:%s", l.GetRequestsPerUnit(), l.GetUnit()))
	}
	if n := d.GetHitsAddend(); n != nil {
		s.Fields["hitsAddend"] = structpb.NewNumberValue(float64(n.GetValue()))
	}
	return s
}

// passed merges what the rules have to pass on that let the request pass, nil
// if there is nothing.
func (a answering) passed() *structpb.Struct {
	var all *structpb.Struct
	for i := range a.Results {
		p := &a.Applied[i]
		if p.Rule.Leaf == nil || p.Brought || p.Rule.Leaf.Metadata == nil || !a.Results[i].Allowed && !p.Shadow {
			continue
		}
		s, err := structpb.NewStruct(p.Rule.Leaf.Metadata)
		if err != nil {
			continue // never: it was read as what a Struct can hold
		}
		if all == nil {
			all = s
			continue
		}
		merge(all, s)
	}
	return all
}

// merge adds to a what only b has, also within structs of both.
func merge(a, b *structpb.Struct) {
	for key, value := range b.GetFields() {
		had, ok := a.GetFields()[key]
		switch {
		case !ok:
			a.Fields[key] = value
		case had.GetStructValue() != nil && value.GetStructValue() != nil:
			merge(had.GetStructValue(), value.GetStructValue())
		}
	}
}
