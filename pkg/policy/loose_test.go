package policy_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// A limit that is said never to decide can be left out: no charge is answered
// another way.
func TestLimitsThatNeverDecide(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	warned := 0
	for range 2000 {
		limit := func() bucket.Limit {
			return bucket.Limit{
				Tokens: 1 + random.Int64N(5), Per: time.Duration(1+random.IntN(4)) * time.Second,
				Burst: 1 + random.Int64N(6), Refill: bucket.Refill(random.IntN(2)),
			}
		}
		both := []bucket.Limit{limit(), limit()}
		_, faults := policy.Compile(rules(policy.RuleSpec{Name: "r", Limits: both}), policy.Options{})
		for i := range both {
			if !warns(faults, "rules[0].limits["+string(rune('0'+i))+"]") {
				continue
			}
			warned++
			if at, ok := differ(random, both, both[1-i:2-i]); ok {
				t.Fatalf("Compile(%+v) warns of limit %d, but it decides charge %d", both, i, at)
			}
		}
	}
	if warned < 100 {
		t.Errorf("Compile warned of %d limits, want some hundred", warned)
	}
}

func warns(faults []policy.Fault, path string) bool {
	for _, f := range faults {
		if f.Path == path && f.Warning && strings.Contains(f.Found, "never decides") {
			return true
		}
	}
	return false
}

// differ returns which of many charges a bucket of all answers in another way
// than one of some.
func differ(random *rand.Rand, all, some []bucket.Limit) (int, bool) {
	ls, fewer := mustLimits(all), mustLimits(some)
	var b, c bucket.Bucket
	at := now
	for i := range 200 {
		at = at.Add(time.Duration(random.IntN(1500)) * time.Millisecond)
		cost := 1 + random.Int64N(2)
		var got, want bucket.Result
		b, got = b.Take(ls, at, cost)
		c, want = c.Take(fewer, at, cost)
		if got.Allowed != want.Allowed {
			return i, true
		}
	}
	return 0, false
}

func mustLimits(limits []bucket.Limit) *bucket.Limits {
	ls, err := bucket.NewLimits(limits...)
	if err != nil {
		panic(err)
	}
	return ls
}
