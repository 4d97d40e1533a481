// Package authz is the ext_authz door: Envoy's
// envoy.service.auth.v3.Authorization/Check. It turns a CheckRequest into
// attributes, and at the end the answer into a CheckResponse. It makes no
// decision of its own.
//
// Every decision is an answer with an OK call. A gRPC error says that there is
// none, and an Envoy that fails open lets the request pass then.
package authz

import (
	"context"
	"errors"
	"sync"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-mesh/sluice/pkg/identity"
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
	// Identified is called once for each request that a policy is for, before
	// it is decided upon, on the caller's goroutine. It must not change or
	// keep what it is given. nil calls nothing.
	Identified func(*policy.Policy, *identity.Attributes, identity.Identity)
}

// A Server answers Check. It is safe for concurrent use.
type Server struct {
	authv3.UnimplementedAuthorizationServer
	opts     Options
	readings sync.Pool // of *reading
}

// New makes a Server. It owns nothing.
func New(o Options) (*Server, error) {
	switch {
	case o.Policies == nil:
		return nil, errors.New("authz: Options.Policies is required")
	case o.Limiter == nil:
		return nil, errors.New("authz: Options.Limiter is required")
	}
	return &Server{opts: o, readings: sync.Pool{New: newReading}}, nil
}

// domainKey is the context extension by which a route names its policy.
const domainKey = "domain"

// Check answers one request, whatever is missing in req. The policy is the one
// of the route's context extension "domain", else the set's own choice; where
// there is none, the request is allowed. The error is not nil only if ctx
// ended before there was a decision.
func (s *Server) Check(ctx context.Context, req *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	answer, err := s.answer(ctx, attributes(req.GetAttributes()), new(response.Space))
	if err != nil {
		return nil, err
	}
	resp := new(authv3.CheckResponse)
	if err := proto.Unmarshal(answer, resp); err != nil {
		return nil, status.Error(codes.Internal, err.Error()) // never: we have written it
	}
	return resp, nil
}

// Answer is Check of a request as it is on the wire, and answers so. It is not
// known, and nothing was decided, where request is one that Envoy does not
// write: what generated code reads in it, Check answers. The answer is the
// caller's.
func (s *Server) Answer(ctx context.Context, request string) (answer []byte, known bool, err error) {
	r := s.readings.Get().(*reading)
	if known = r.read(request); known {
		answer, err = s.answer(ctx, &r.attrs, &r.space)
	}
	if r.reset() {
		s.readings.Put(r)
	}
	return answer, known, err
}

// usual is room for an answer of the usual size.
const usual = 512

func (s *Server) answer(ctx context.Context, attrs *identity.Attributes, space *response.Space) ([]byte, error) {
	d := s.decide(ctx, attrs)
	if d.Reason == limiter.Canceled {
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	var q response.Request // of which an allowance repeats nothing
	if !d.Allowed {
		q = response.RequestOf(attrs)
	}
	q.Space = space
	r := response.For(d, q)
	return appendResponse(make([]byte, 0, usual), &r), nil
}

func (s *Server) decide(ctx context.Context, attrs *identity.Attributes) limiter.Decision {
	domain := attrs.Context[domainKey]
	p := s.opts.Policies().ForRequests(domain)
	if p == nil {
		return s.opts.Limiter.Unknown(ctx, domain)
	}
	if name := p.Edge.Stamp(); name != "" {
		attrs.Stamps = stamps(ctx, name)
	}
	id := p.Edge.Identify(attrs)
	if s.opts.Identified != nil {
		s.opts.Identified(p, attrs, id)
	}
	return s.opts.Limiter.Decide(ctx, p.ForRequest(policy.Request{Attributes: attrs, Identity: id}))
}
