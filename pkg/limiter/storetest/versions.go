package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// A version is the limits of a rule, as they are said.
type version struct {
	limits []bucket.Limit
	debt   int64 // the most of it, 0 for none
}

func (v version) compile(t *testing.T) *bucket.Limits {
	t.Helper()
	if v.debt > 0 {
		return indebted(t, v.debt, v.limits...)
	}
	return limits(t, v.limits...)
}

func plain(list ...bucket.Limit) version { return version{limits: list} }

func owing(debt int64, list ...bucket.Limit) version { return version{list, debt} }

const (
	day      = 24 * time.Hour
	greedily = bucket.Greedy
	byPeriod = bucket.Interval
	byClock  = bucket.Aligned
	byCharge = bucket.Sliding
)

// ruleVersions are the limits that each rule may have in turn.
func ruleVersions(zone *time.Location) [][]version {
	return slices.Concat(usualVersions, oddVersions, calendarVersions(zone))
}

var usualVersions = [][]version{
	{
		plain(bucket.Limit{Tokens: 5, Per: 10 * sec}),
		plain(bucket.Limit{Tokens: 5, Per: 10 * sec, Burst: 9}),
		plain(bucket.Limit{Tokens: 2, Per: 10 * sec, Burst: 3}),
		plain(bucket.Limit{Tokens: 5, Per: 10 * sec, Refill: byPeriod}),
		plain(bucket.Limit{Tokens: 7, Per: 3 * sec}),
		plain(bucket.Limit{Tokens: 5, Per: 10 * sec, Refill: byClock}),
		plain(bucket.Limit{Tokens: 5, Per: 10 * sec, Refill: byCharge}),
		owing(12, bucket.Limit{Tokens: 5, Per: 10 * sec}),
	},
	{
		plain(bucket.Limit{Tokens: 20, Per: 10 * sec, Refill: byPeriod}, bucket.Limit{Tokens: 10, Per: time.Minute, Burst: 100}),
		plain(bucket.Limit{Tokens: 10, Per: time.Minute, Burst: 30}, bucket.Limit{Tokens: 20, Per: 10 * sec, Refill: byPeriod}),
		plain(bucket.Limit{Tokens: 20, Per: 10 * sec, Burst: 50, Refill: byPeriod}),
		plain(bucket.Limit{Tokens: 20, Per: 10 * sec, Refill: byCharge}, bucket.Limit{Tokens: 10, Per: time.Minute, Burst: 40, Refill: byClock}),
	},
	{
		plain(bucket.Limit{Name: "a", Tokens: 3, Per: sec}, bucket.Limit{Name: "b", Tokens: 50, Per: time.Minute}, bucket.Limit{Name: "c", Tokens: 400, Per: time.Hour}),
		plain(bucket.Limit{Name: "c", Tokens: 400, Per: time.Hour}, bucket.Limit{Name: "a", Tokens: 3, Per: 2 * sec, Refill: byPeriod}),
		plain(bucket.Limit{Name: "a", Tokens: 6, Per: sec}, bucket.Limit{Name: "new", Tokens: 50, Per: time.Minute, Burst: 70}),
		plain(bucket.Limit{Tokens: 0, Per: sec}, bucket.Limit{Name: "b", Tokens: 50, Per: time.Minute}),
		plain(
			bucket.Limit{Name: "c", Tokens: 300, Per: time.Hour, Refill: byCharge}, bucket.Limit{Name: "b", Tokens: 40, Per: time.Minute},
			bucket.Limit{Name: "a", Tokens: 5, Per: 2 * sec, Refill: byCharge},
		),
		owing(1000, bucket.Limit{Name: "a", Tokens: 3, Per: sec}, bucket.Limit{Name: "b", Tokens: 50, Per: time.Minute, Refill: byPeriod}),
	},
}

var oddVersions = [][]version{
	{
		// To lease from, with bursts that become more and less.
		plain(bucket.Limit{Tokens: 40, Per: 10 * sec, Burst: 90}),
		plain(bucket.Limit{Tokens: 40, Per: 10 * sec, Burst: 900}),
		plain(bucket.Limit{Tokens: 40, Per: 10 * sec, Burst: 20}),
		plain(bucket.Limit{Tokens: 1_000_003, Per: day, Burst: 5_000_000}),
		plain(bucket.Limit{Name: "n", Tokens: 70, Per: 10 * sec}, bucket.Limit{Tokens: 4, Per: sec, Burst: 60}),
		plain(bucket.Limit{Tokens: 40, Per: 10 * sec, Refill: byCharge}),
		plain(bucket.Limit{Tokens: 40, Per: 10 * sec, Refill: byClock}),
		owing(50, bucket.Limit{Tokens: 40, Per: 10 * sec}),
	},
	{
		// A prime rate and a long period: counted in ticks of 1 ms where
		// the burst is large, of 1 µs where it is small.
		plain(bucket.Limit{Tokens: 1_000_003, Per: day, Burst: 1_000_003}),
		plain(bucket.Limit{Tokens: 1_000_003, Per: day, Burst: 40}),
		plain(bucket.Limit{Tokens: 1_000_003, Per: day, Burst: 50, Refill: byPeriod}),
		plain(bucket.Limit{Tokens: 1_000_003, Per: day, Refill: byPeriod}),
		plain(bucket.Limit{Tokens: 1_000_003, Per: day, Burst: 40, Refill: byClock}),
		owing(900_000, bucket.Limit{Tokens: 1_000_003, Per: day, Burst: 40}),
	},
	{
		plain(bucket.Limit{Tokens: 1, Per: ms}),
		plain(bucket.Limit{Tokens: 1 << 52, Per: ms, Burst: 1<<53 - 1}),
		plain(bucket.Limit{Tokens: 999, Per: 1001 * ms, Burst: 5000}),
		plain(bucket.Limit{Tokens: 1, Per: ms, Refill: byClock}),
		plain(bucket.Limit{Tokens: 1, Per: ms, Refill: byCharge}),
		plain(bucket.Limit{Tokens: 1<<53 - 1, Per: ms, Refill: byCharge}),
		plain(bucket.Limit{Tokens: 1 << 52, Per: ms, Burst: 1<<53 - 1, Refill: byClock}),
		owing(1<<52-1, bucket.Limit{Tokens: 1 << 52, Per: ms}),
	},
	{
		// Sliding, with periods that become longer and shorter.
		plain(bucket.Limit{Tokens: 9, Per: 8 * sec, Refill: byCharge}),
		plain(bucket.Limit{Tokens: 14, Per: 8 * sec, Refill: byCharge}),
		plain(bucket.Limit{Tokens: 4, Per: 8 * sec, Refill: byCharge}),
		plain(bucket.Limit{Tokens: 20, Per: 30 * sec, Refill: byCharge}),
		plain(bucket.Limit{Tokens: 200, Per: 400 * sec, Refill: byCharge}),
		plain(bucket.Limit{Tokens: 5, Per: sec, Refill: byCharge}, bucket.Limit{Tokens: 70, Per: 20 * day, Refill: byCharge}),
		plain(bucket.Limit{Tokens: 9, Per: 8 * sec}),
	},
}

// leaseVersions are limits to lease from, and what else such a rule may come to.
var leaseVersions = [][]version{
	{
		plain(bucket.Limit{Tokens: 40, Per: 10 * sec, Burst: 90}),
		plain(bucket.Limit{Tokens: 40, Per: 10 * sec, Burst: 900}),
		plain(bucket.Limit{Tokens: 40, Per: 10 * sec, Burst: 20}),
		plain(bucket.Limit{Tokens: 40, Per: 10 * sec, Burst: 7}),
		plain(bucket.Limit{Tokens: 3, Per: sec, Burst: 50}),
		plain(bucket.Limit{Per: 10 * sec}),
		plain(bucket.Limit{Tokens: 40, Per: 10 * sec, Refill: byPeriod}),
		plain(bucket.Limit{Tokens: 40, Per: 10 * sec, Refill: byCharge}),
		plain(bucket.Limit{Name: "n", Tokens: 70, Per: 10 * sec}, bucket.Limit{Tokens: 4, Per: sec, Burst: 60}),
		owing(50, bucket.Limit{Tokens: 40, Per: 10 * sec, Burst: 90}),
	},
	{
		// In ticks of 1 ms, and of 1 µs.
		plain(bucket.Limit{Tokens: 1_000_003, Per: day, Burst: 5_000_000}),
		plain(bucket.Limit{Tokens: 333_331, Per: 1_000_003 * ms, Burst: 9_000_000_000}),
		plain(bucket.Limit{Tokens: 999_983, Per: day, Burst: 40}),
		plain(bucket.Limit{Tokens: 1_000_003, Per: day, Burst: 1_000_003, Refill: byPeriod}),
	},
}

func calendarVersions(zone *time.Location) [][]version {
	daily := bucket.Limit{Tokens: 3, Burst: 7, Calendar: bucket.Day, Zone: zone, Refill: byClock}
	weekly := bucket.Limit{Tokens: 30, Calendar: bucket.Week, Zone: zone, Refill: byClock}
	return [][]version{
		{
			plain(daily),
			plain(weekly, daily),
			plain(bucket.Limit{Tokens: 3, Per: day, Burst: 7, Refill: byClock}),
			plain(bucket.Limit{Tokens: 5, Per: day, Refill: byPeriod}),
			plain(bucket.Limit{Tokens: 5, Per: day, Refill: byCharge}),
			plain(bucket.Limit{Name: "m", Tokens: 8, Burst: 16, Calendar: bucket.Month, Zone: zone, Refill: byClock}),
		},
	}
}
