package limiter

import (
	"context"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// Look asks s which of charges there is room for, each alone, and has it charge
// none of them. With debt a positive cost is always taken; what is told then is
// the answer to a cost of 0.
func Look(ctx context.Context, s Store, charges []bucket.Charge, results []bucket.Result) error {
	asks := append(append(make([]bucket.Charge, 0, len(charges)+1), charges...), never)
	for i := range charges {
		asks[i].Shadow = true
		if asks[i].Limits.Debt() {
			asks[i].Cost = 0
		}
	}
	answers := make([]bucket.Result, len(asks))
	if err := s.Take(ctx, asks, answers); err != nil {
		return err
	}
	copy(results, answers)
	return nil
}

// never is a charge that no bucket has room for. Where it is the only one that
// is not shadow, none of the others is made, and the store says of each
// whether there was room. No rule's key is like its.
var never = bucket.Charge{Key: "{look}", Limits: neverLimits(), Cost: 1}

func neverLimits() *bucket.Limits {
	limits, err := bucket.NewLimits(bucket.Limit{Per: time.Second})
	if err != nil {
		return nil // never: a rate of 0 can be counted
	}
	return limits
}
