package authz_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/fstest"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-mesh/sluice/pkg/authz"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/limiter/doortest"
	"github.com/sluice-mesh/sluice/pkg/memstore"
	"github.com/sluice-mesh/sluice/pkg/policy"
	"github.com/sluice-mesh/sluice/pkg/policyfile"
)

func Example() {
	set, faults := policyfile.Load(policyfile.Options{Paths: []string{"edge.yaml"}, FS: fstest.MapFS{"edge.yaml": {Data: []byte(`
domain: edge
rules:
  - name: hello
    match: {path: /hello}
    per: [ip]
    limits: [{rate: 1/10s}]
`)}}})
	store, err1 := memstore.New(memstore.Options{})
	l, err2 := limiter.New(limiter.Options{Store: store})
	s, err3 := authz.New(authz.Options{Policies: func() *policy.Set { return set }, Limiter: l})
	if err1 != nil || err2 != nil || err3 != nil {
		fmt.Println(faults, err1, err2, err3)
		return
	}
	for range 2 {
		resp, err := s.Check(context.Background(), get("203.0.113.7", "/hello?name=x"))
		fmt.Println(codes.Code(resp.GetStatus().GetCode()), resp.GetDeniedResponse().GetStatus().GetCode(), err)
	}
	// Output:
	// OK Empty <nil>
	// ResourceExhausted TooManyRequests <nil>
}

func get(peer, path string) *authv3.CheckRequest {
	return &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Source:  &authv3.AttributeContext_Peer{Address: socket(peer)},
		Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{Method: "GET", Path: path, Host: "example.com"}},
	}}
}

func socket(addr string) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: addr, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 51234},
	}}}
}

// server makes a door of its own limiter, which is one of o.
func server(t testing.TB, set *policy.Set, o limiter.Options) *authz.Server {
	t.Helper()
	return door(t, set, doortest.Limiter(t, o))
}

func door(t testing.TB, set *policy.Set, l *limiter.Limiter) *authz.Server {
	t.Helper()
	s, err := authz.New(authz.Options{Policies: func() *policy.Set { return set }, Limiter: l})
	if err != nil {
		t.Fatalf("New() = %v, want no error", err)
	}
	return s
}

func TestNewWants(t *testing.T) {
	t.Parallel()
	l := doortest.Limiter(t, limiter.Options{})
	for want, o := range map[string]authz.Options{
		"authz: Options.Policies is required": {Limiter: l},
		"authz: Options.Limiter is required":  {Policies: func() *policy.Set { return nil }},
	} {
		if _, err := authz.New(o); err == nil || err.Error() != want {
			t.Errorf("New() = %v, want %q", err, want)
		}
	}
}

func TestCheckCanceled(t *testing.T) {
	t.Parallel()
	s := server(t, doortest.Load(t, perIP), limiter.Options{Store: doortest.Broken{Err: context.Canceled}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if resp, err := s.Check(ctx, get("203.0.113.7", "/")); status.Code(err) != codes.Canceled || resp != nil {
		t.Errorf("Check(canceled) = %v, %v, want Canceled", resp, err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 0)
	defer cancel()
	if resp, err := s.Check(ctx, get("203.0.113.7", "/")); status.Code(err) != codes.DeadlineExceeded || resp != nil {
		t.Errorf("Check(late) = %v, %v, want DeadlineExceeded", resp, err)
	}
}

const perIP = `
domain: edge
on_error: deny
rules:
  - name: all
    match: {path: /*}
    per: [ip]
    missing: share
    limits: [{rate: 1/1h}]
`

func TestCheckByDomain(t *testing.T) {
	t.Parallel()
	const none = "domain: mesh\nrules: [{name: a, descriptor: [a], limits: [{rate: 1/1h}]}]\n"
	for name, tc := range map[string]struct {
		set      *policy.Set
		domain   string
		code     codes.Code
		unknowns int
	}{
		"the only one":             {doortest.Load(t, perIP), "", codes.ResourceExhausted, 0},
		"by its name":              {doortest.Load(t, perIP), "edge", codes.ResourceExhausted, 0},
		"B102 an unknown name":     {doortest.Load(t, perIP), "egde", codes.OK, 2},
		"no rules for requests":    {doortest.Load(t, none), "", codes.OK, 2},
		"no set at all":            {nil, "edge", codes.OK, 2},
		"an unknown name, no rule": {doortest.Load(t, none), "x", codes.OK, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			unknowns := 0
			s := server(t, tc.set, limiter.Options{Log: slog.New(slog.DiscardHandler), Observe: func(_ context.Context, d limiter.Decision) {
				if d.Reason == limiter.UnknownDomain {
					unknowns++
				}
			}})
			req := get("203.0.113.7", "/")
			if tc.domain != "" {
				req.Attributes.ContextExtensions = map[string]string{"domain": tc.domain}
			}
			var got codes.Code
			for range 2 {
				resp, err := s.Check(t.Context(), req)
				if err != nil {
					t.Fatalf("Check() = %v, want no error", err)
				}
				got = codes.Code(resp.GetStatus().GetCode())
			}
			if got != tc.code || unknowns != tc.unknowns {
				t.Errorf("second Check(domain %q) = %v, %d unknown, want %v, %d", tc.domain, got, unknowns, tc.code, tc.unknowns)
			}
		})
	}
}
