package rls_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/fstest"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/limiter/doortest"
	"github.com/sluice-mesh/sluice/pkg/memstore"
	"github.com/sluice-mesh/sluice/pkg/policy"
	"github.com/sluice-mesh/sluice/pkg/policyfile"
	"github.com/sluice-mesh/sluice/pkg/rls"
)

func Example() {
	set, faults := policyfile.Load(policyfile.Options{Paths: []string{"mesh.yaml"}, FS: fstest.MapFS{"mesh.yaml": {Data: []byte(`
domain: mesh
rules:
  - name: login
    descriptor: [generic_key=login, remote_address]
    limits: [{rate: 1/1m}]
`)}}})
	store, err1 := memstore.New(memstore.Options{})
	l, err2 := limiter.New(limiter.Options{Store: store})
	s, err3 := rls.New(rls.Options{Policies: func() *policy.Set { return set }, Limiter: l})
	if err1 != nil || err2 != nil || err3 != nil {
		fmt.Println(faults, err1, err2, err3)
		return
	}
	for range 2 {
		resp, err := s.ShouldRateLimit(context.Background(), &rlsv3.RateLimitRequest{
			Domain:      "mesh",
			Descriptors: []*commonv3.RateLimitDescriptor{descriptor("generic_key", "login", "remote_address", "203.0.113.7")},
		})
		fmt.Println(resp.GetOverallCode(), resp.GetStatuses()[0].GetLimitRemaining(), err)
	}
	// Output:
	// OK 0 <nil>
	// OVER_LIMIT 0 <nil>
}

// descriptor makes one of keys and values in turns.
func descriptor(entries ...string) *commonv3.RateLimitDescriptor {
	d := new(commonv3.RateLimitDescriptor)
	for i := 0; i < len(entries); i += 2 {
		d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{Key: entries[i], Value: entries[i+1]})
	}
	return d
}

// server makes a door of its own limiter, which is one of o.
func server(t testing.TB, set *policy.Set, o limiter.Options) *rls.Server {
	t.Helper()
	return door(t, set, doortest.Limiter(t, o))
}

func door(t testing.TB, set *policy.Set, l *limiter.Limiter) *rls.Server {
	t.Helper()
	s, err := rls.New(rls.Options{Policies: func() *policy.Set { return set }, Limiter: l})
	if err != nil {
		t.Fatalf("New() = %v, want no error", err)
	}
	return s
}

const mesh = `
domain: mesh
rules:
  - {name: a, descriptor: [a], limits: [{rate: 10/1h}]}
`

func TestNewWants(t *testing.T) {
	t.Parallel()
	l := doortest.Limiter(t, limiter.Options{})
	for want, o := range map[string]rls.Options{
		"rls: Options.Policies is required": {Limiter: l},
		"rls: Options.Limiter is required":  {Policies: func() *policy.Set { return nil }},
	} {
		if _, err := rls.New(o); err == nil || err.Error() != want {
			t.Errorf("New() = %v, want %q", err, want)
		}
	}
}

func TestShouldRateLimitErrors(t *testing.T) {
	t.Parallel()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	one := []*commonv3.RateLimitDescriptor{descriptor("a", "x")}
	many := make([]*commonv3.RateLimitDescriptor, 16385)
	for name, tc := range map[string]struct {
		ctx  context.Context
		req  *rlsv3.RateLimitRequest
		want codes.Code
	}{
		"nil":                 {t.Context(), nil, codes.InvalidArgument},
		"no domain":           {t.Context(), &rlsv3.RateLimitRequest{Descriptors: one}, codes.InvalidArgument},
		"no descriptor":       {t.Context(), &rlsv3.RateLimitRequest{Domain: "mesh"}, codes.InvalidArgument},
		"too many":            {t.Context(), &rlsv3.RateLimitRequest{Domain: "mesh", Descriptors: many}, codes.InvalidArgument},
		"as many as there be": {t.Context(), &rlsv3.RateLimitRequest{Domain: "mesh", Descriptors: many[1:]}, codes.OK},
		"canceled":            {canceled, &rlsv3.RateLimitRequest{Domain: "mesh", Descriptors: one}, codes.Canceled},
		"a store that fails":  {t.Context(), &rlsv3.RateLimitRequest{Domain: "mesh", Descriptors: one}, codes.OK},
	} {
		s := server(t, doortest.Load(t, mesh), limiter.Options{Store: doortest.Broken{Err: errors.New("lost")}})
		if _, err := s.ShouldRateLimit(tc.ctx, tc.req); status.Code(err) != tc.want {
			t.Errorf("ShouldRateLimit(%s) = %v, want %v", name, err, tc.want)
		}
	}
}

func TestB102UnknownDomain(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]*policy.Set{"another": doortest.Load(t, mesh), "none": nil} {
		unknowns := 0
		s := server(t, set, limiter.Options{Observe: func(_ context.Context, d limiter.Decision) {
			if d.Reason == limiter.UnknownDomain {
				unknowns++
			}
		}})
		for range 3 {
			resp, err := s.ShouldRateLimit(t.Context(), &rlsv3.RateLimitRequest{
				Domain: "ambassador", Descriptors: []*commonv3.RateLimitDescriptor{descriptor("a", "x"), nil},
			})
			if err != nil || resp.GetOverallCode() != rlsv3.RateLimitResponse_OK || len(resp.GetStatuses()) != 2 {
				t.Errorf("ShouldRateLimit(%s) = %v, %v, want OK and two statuses", name, resp, err)
			}
			for _, s := range resp.GetStatuses() {
				if s.GetCode() != rlsv3.RateLimitResponse_OK || s.GetCurrentLimit() != nil {
					t.Errorf("ShouldRateLimit(%s) = status %v, want a bare OK", name, s)
				}
			}
		}
		if unknowns != 3 {
			t.Errorf("ShouldRateLimit(%s) observed %d unknown domains, want 3", name, unknowns)
		}
	}
}
