package bench

import (
	"context"
	"errors"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
)

// RLS asks as Envoy's rate limit filter does. In values, {key} stands for the
// key of a request and {n} for its number. Domain and Descriptors are required.
type RLS struct {
	Domain      string
	Descriptors [][]Entry
	Hits        uint32 // of a request; 0 says nothing of them
}

// An Entry is one key and value of a descriptor.
type Entry struct{ Key, Value string }

type rls struct {
	RLS
	values [][]template
}

func (r RLS) compile() (door, error) {
	if r.Domain == "" || len(r.Descriptors) == 0 {
		return nil, errors.New("the rate limit service wants a domain and at least one descriptor")
	}
	compiled := &rls{RLS: r}
	for _, d := range r.Descriptors {
		var values []template
		for _, e := range d {
			values = append(values, parseTemplate(e.Value))
		}
		compiled.values = append(compiled.values, values)
	}
	return compiled, nil
}

func (r *rls) name() string { return "rls" }

func (r *rls) dial(t Target) ([]asker, func() error, error) { return dialGRPC(t, r.over) }

func (r *rls) over(conn grpc.ClientConnInterface) asker {
	return func(ctx context.Context, d Draw) (Answer, error) {
		found := verdict{path: []protowire.Number{1}} // overall_code
		if err := conn.Invoke(ctx, rlsv3.RateLimitService_ShouldRateLimit_FullMethodName, r.request(d), &found, readVerdict); err != nil {
			return "", err
		}
		switch rlsv3.RateLimitResponse_Code(found.value) {
		case rlsv3.RateLimitResponse_OK:
			return OK, nil
		case rlsv3.RateLimitResponse_OVER_LIMIT:
			return Denied, nil
		default:
			return Unknown, nil
		}
	}
}

func (r *rls) request(d Draw) *rlsv3.RateLimitRequest {
	req := &rlsv3.RateLimitRequest{Domain: r.Domain, HitsAddend: r.Hits}
	req.Descriptors = make([]*commonv3.RateLimitDescriptor, len(r.Descriptors))
	for i, entries := range r.Descriptors {
		req.Descriptors[i] = &commonv3.RateLimitDescriptor{Entries: make([]*commonv3.RateLimitDescriptor_Entry, len(entries))}
		for j := range entries {
			req.Descriptors[i].Entries[j] = &commonv3.RateLimitDescriptor_Entry{Key: entries[j].Key, Value: r.values[i][j].fill(d)}
		}
	}
	return req
}
