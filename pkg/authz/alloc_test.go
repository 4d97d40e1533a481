//go:build !race

// The race detector makes sync.Pool forget at random, so nothing is counted
// under it.

package authz_test

import (
	"testing"

	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/limiter/doortest"
)

// Most of what a request allocates is the answer, five headers and five facts;
// their number must not show in it.
func TestCheckAllocates(t *testing.T) {
	s := server(t, doortest.Load(t, perIP), limiter.Options{})
	ctx, req := t.Context(), get("203.0.113.7", "/api/x")
	const most = 28
	got := testing.AllocsPerRun(1000, func() {
		if _, err := s.Check(ctx, req); err != nil {
			t.Fatal(err)
		}
	})
	if got > most {
		t.Errorf("Check() allocates %v times, want at most %d", got, most)
	}
}
