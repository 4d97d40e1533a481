package rls

import (
	"math"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/sluice-mesh/sluice/pkg/descriptors"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// maxCost bounds what one descriptor can ask for. It is beyond every use, and
// far enough below the bound of exact numbers that sums of it stay there.
const maxCost = 1 << 40

func appendEntries(entries descriptors.Descriptor, d *commonv3.RateLimitDescriptor) descriptors.Descriptor {
	for _, e := range d.GetEntries() {
		entries = append(entries, descriptors.Entry{Key: e.GetKey(), Value: e.GetValue()})
	}
	return entries
}

// charge sets the cost of what a descriptor applies: its own hits, of which 0
// only looks, else the request's, of which 0 means that it says nothing.
func charge(applied []policy.Applied, d *commonv3.RateLimitDescriptor, hits uint32) {
	cost := max(int64(hits), 1)
	if own := d.GetHitsAddend(); own != nil {
		cost = int64(min(own.GetValue(), maxCost))
	}
	if d.GetIsNegativeHits() {
		cost = -cost
	}
	for i := range applied {
		applied[i].Cost = cost
	}
}

var broughtUnits = map[typev3.RateLimitUnit]time.Duration{
	typev3.RateLimitUnit_SECOND: time.Second,
	typev3.RateLimitUnit_MINUTE: time.Minute,
	typev3.RateLimitUnit_HOUR:   time.Hour,
	typev3.RateLimitUnit_DAY:    day,
	typev3.RateLimitUnit_MONTH:  month,
	typev3.RateLimitUnit_YEAR:   year,
}

// period returns the period of a limit that comes with a descriptor, 0 for a
// unit that is not known or a time that cannot be told.
func period(o *commonv3.RateLimitDescriptor_RateLimitOverride) time.Duration {
	unit, n := broughtUnits[o.GetUnit()], time.Duration(max(o.GetUnitMultiplier().GetValue(), 1))
	if unit > math.MaxInt64/n {
		return 0
	}
	return unit * n
}
