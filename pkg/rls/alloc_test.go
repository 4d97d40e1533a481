//go:build !race

// The race detector makes sync.Pool forget at random, so nothing is counted
// under it.

package rls_test

import (
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/limiter/doortest"
)

// Most of what a request allocates is the answer: a status, its limit and its
// duration, and the facts; their number must not show in it.
func TestShouldRateLimitAllocates(t *testing.T) {
	s := server(t, doortest.Load(t, mesh), limiter.Options{})
	ctx, req := t.Context(), &rlsv3.RateLimitRequest{Domain: "mesh", Descriptors: []*commonv3.RateLimitDescriptor{descriptor("a", "1")}}
	const most = 28
	got := testing.AllocsPerRun(1000, func() {
		if _, err := s.ShouldRateLimit(ctx, req); err != nil {
			t.Fatal(err)
		}
	})
	if got > most {
		t.Errorf("ShouldRateLimit() allocates %v times, want at most %d", got, most)
	}
}
