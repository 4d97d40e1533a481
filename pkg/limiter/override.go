package limiter

import (
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// Override gives all of applied, those without limits too, the one limit that a
// request brought with it: greedy, with the rate as its burst. The buckets stay
// the same, and keep what was spent. A limit that cannot be counted (no period,
// or one beyond 100 years) leaves the rules' own, and Override says false.
func Override(applied []policy.Applied, tokens int64, per time.Duration) bool {
	limits, err := bucket.NewLimits(bucket.Limit{Tokens: tokens, Per: per})
	if err != nil {
		return false
	}
	for i := range applied {
		applied[i].Limits, applied[i].Unlimited = limits, false
	}
	return true
}
