// Package rls is the door of Envoy's rate limit filter:
// envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit. It turns
// Envoy's descriptors into ours, and at the end the decision into one status
// for each of them. It makes no decision of its own.
package rls

import (
	"context"
	"errors"
	"sync"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/policy"
	"github.com/sluice-mesh/sluice/pkg/response"
)

// Options are what a Server is made of. Policies and Limiter are required.
type Options struct {
	// Policies returns the set to decide by. It is asked once per request and
	// may return another one each time; nil means that there is none.
	Policies func() *policy.Set
	Limiter  *limiter.Limiter
	// Manner, unless nil, is how envoyproxy/ratelimit would be asked to
	// answer. With nil an answer has what policies say of headers, and facts
	// about the decision as metadata.
	Manner *Manner
	// Now is the clock by which a bucket that nothing was taken from has the
	// end of its window told. nil means time.Now.
	Now func() time.Time
	// Asked is called for each request with how long the answer took, and the
	// error that it was. It may be nil.
	Asked func(time.Duration, error)
	// Strayed is called for each request of a domain that no policy has, with
	// the number of its descriptors. It may be nil.
	Strayed func(domain string, descriptors int)
}

// A Server answers ShouldRateLimit. It is safe for concurrent use.
type Server struct {
	rlsv3.UnimplementedRateLimitServiceServer
	opts     Options
	readings sync.Pool // of *reading
}

// New makes a Server. It owns nothing.
func New(o Options) (*Server, error) {
	switch {
	case o.Policies == nil:
		return nil, errors.New("rls: Options.Policies is required")
	case o.Limiter == nil:
		return nil, errors.New("rls: Options.Limiter is required")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Server{opts: o, readings: sync.Pool{New: newReading}}, nil
}

// ShouldRateLimit answers one request with one status for each descriptor, in
// order. A request without a domain, without a descriptor or with more than
// 16384 of them gets INVALID_ARGUMENT; otherwise the error is not nil only if
// ctx ended before there was a decision or, with a Manner, if there is no set.
func (s *Server) ShouldRateLimit(ctx context.Context, req *rlsv3.RateLimitRequest) (*rlsv3.RateLimitResponse, error) {
	answer, err := s.answer(ctx, req, new(scratch))
	if err != nil {
		return nil, err
	}
	resp := new(rlsv3.RateLimitResponse)
	if err := proto.Unmarshal(answer, resp); err != nil {
		return nil, status.Error(codes.Internal, err.Error()) // never: we have written it
	}
	return resp, nil
}

// Answer is ShouldRateLimit of a request as it is on the wire, and answers so.
// It is not known, and nothing was decided, where request has more than entries
// and hits: what generated code reads in it, ShouldRateLimit answers. The
// answer is the caller's.
func (s *Server) Answer(ctx context.Context, request string) (answer []byte, known bool, err error) {
	r := s.readings.Get().(*reading)
	if known = r.read(request); known {
		answer, err = s.answer(ctx, &r.req, &r.scratch)
	}
	if r.reset() {
		s.readings.Put(r)
	}
	return answer, known, err
}

// usual is room for an answer of the usual size.
const usual = 256

func (s *Server) answer(ctx context.Context, req *rlsv3.RateLimitRequest, c *scratch) ([]byte, error) {
	if s.opts.Asked == nil {
		return s.write(ctx, req, c)
	}
	begin := s.opts.Now()
	answer, err := s.write(ctx, req, c)
	s.opts.Asked(s.opts.Now().Sub(begin), err)
	return answer, err
}

func (s *Server) write(ctx context.Context, req *rlsv3.RateLimitRequest, c *scratch) ([]byte, error) {
	if err := check(req); err != nil {
		return nil, err
	}
	set := s.opts.Policies()
	if set == nil && s.opts.Manner != nil {
		return nil, status.Error(codes.Unavailable, "no rate limit configuration loaded")
	}
	m, ends := s.match(set.Domain(req.GetDomain()), req, c)
	d := s.decide(ctx, req, m, ends)
	if d.Reason == limiter.Canceled {
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	a := answering{&d, ends, s.opts.Now}
	if s.opts.Manner != nil {
		return marshal(s.opts.Manner.answer(a, req))
	}
	r := response.For(d, response.Request{Limits: true, Space: &c.space})
	return a.append(make([]byte, 0, usual), &r, len(req.GetDescriptors())), nil
}

func marshal(resp *rlsv3.RateLimitResponse) ([]byte, error) {
	answer, err := proto.Marshal(resp)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return answer, nil
}

// maxDescriptors bounds the work of one request, which is in proportion to
// them. It is far beyond what Envoy sends, a descriptor for each of its route's
// rate_limits: a request that is refused here passes an Envoy that fails open.
const maxDescriptors = 16384

func check(req *rlsv3.RateLimitRequest) error {
	switch {
	case req.GetDomain() == "":
		return status.Error(codes.InvalidArgument, "rate limit domain must not be empty")
	case len(req.GetDescriptors()) == 0:
		return status.Error(codes.InvalidArgument, "rate limit descriptor list must not be empty")
	case len(req.GetDescriptors()) > maxDescriptors:
		return status.Error(codes.InvalidArgument, "rate limit descriptor list is too long")
	}
	return nil
}

func (s *Server) decide(ctx context.Context, req *rlsv3.RateLimitRequest, m policy.Match, ends []int) limiter.Decision {
	if ends == nil {
		if s.opts.Strayed != nil {
			s.opts.Strayed(req.GetDomain(), len(req.GetDescriptors()))
		}
		return s.opts.Limiter.Unknown(ctx, req.GetDomain())
	}
	return s.opts.Limiter.Decide(ctx, m)
}
