package sim

import (
	"fmt"
	"math"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// slots is how many there are in a Redis Cluster.
const slots = 16384

// tenants are what is known of each key.
type tenants struct {
	limits []*bucket.Limits // of each
	slot   []uint16
	over   []bool
}

func newTenants(s Scenario) (*tenants, error) {
	n := s.Tenants.Count
	t := &tenants{limits: make([]*bucket.Limits, n), slot: make([]uint16, n), over: make([]bool, n)}
	sum := 0.0
	for k := range n {
		sum += weight(k, s.Tenants.Zipf)
	}
	known := map[bucket.Limit]*bucket.Limits{}
	for k := range n {
		rate := s.Traffic.Rate * weight(k, s.Tenants.Zipf) / sum
		limit := limitOf(k, rate, s.Tenants.Plan)
		if known[limit] == nil {
			ls, err := bucket.NewLimits(limit)
			if err != nil {
				return nil, fmt.Errorf("sim: the limit of tenant %d: %w", k, err)
			}
			if s.Leases.leased(limit) {
				ls = ls.Leasing(s.Leases.Share, s.Leases.For)
			}
			known[limit] = ls
		}
		t.limits[k], t.over[k] = known[limit], rate*limit.Per.Seconds() > float64(limit.Tokens)
		t.slot[k] = uint16(mix(s.Seed+uint64(k)) % slots)
	}
	return t, nil
}

func weight(k int, zipf float64) float64 { return math.Pow(float64(k+1), -zipf) }

// limitOf returns the limit of tenant k, that asks at rate.
func limitOf(k int, rate float64, plan int64) bucket.Limit {
	switch {
	case k == 0:
		return bucket.Limit{Tokens: round(1.25 * rate), Per: time.Second}
	case k%10 == 3 && plan > 0:
		return bucket.Limit{Tokens: plan, Per: time.Minute}
	}
	return bucket.Limit{Tokens: max(round(2*rate), 5), Per: time.Second}
}

// round returns x with two digits, and at least 1.
func round(x float64) int64 {
	if x < 1 {
		return 1
	}
	unit := math.Pow(10, max(math.Floor(math.Log10(x))-1, 0))
	return int64(math.Round(x/unit) * unit)
}

// mix makes numbers that follow each other lie anywhere (SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
