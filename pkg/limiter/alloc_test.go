//go:build !race

// The race detector makes sync.Pool forget at random, so nothing is counted
// under it.

package limiter_test

import (
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/limiter"
)

// The one allocation is the Results that the Decision keeps.
func TestDecideAllocates(t *testing.T) {
	results := []bucket.Result{{Allowed: true, Remaining: 5, FullIn: time.Second}, {Allowed: true, Remaining: 2}}
	l := mustNew(t, limiter.Options{Store: &script{results: results}})
	ctx, m := t.Context(), rules("a", "~b")
	if got := testing.AllocsPerRun(1000, func() { l.Decide(ctx, m) }); got > 1 {
		t.Errorf("Decide() allocates %v times, want at most 1", got)
	}
}
