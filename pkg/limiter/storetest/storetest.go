// Package storetest states the contract of limiter.Store as tests. Every store
// runs it:
//
//	func TestStore(t *testing.T) { storetest.Run(t, open) }
//
// Wanted values are worked out by hand from what a bucket promises; only
// Differential compares with the Go arithmetic of package bucket. The package
// knows no store.
package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/limiter"
)

// A Harness is a store under test.
type Harness struct {
	// Store holds nothing yet. It must have room for some thousand keys and
	// wait for as many callers at once.
	Store limiter.Store
	// SetNow sets the clock that the store decides by, which stands still in
	// between. It is never called while a Take runs. Required.
	SetNow func(now time.Time)
	// Forget makes the store drop every bucket that is full by its clock. It
	// is nil for a store that keeps them for long: whether a bucket that was
	// full is still known matters only when the clock is set back.
	Forget func()
	// Apart says that a group that is denied may hold tokens of some of its
	// buckets until it has given them back. Callers at the same time then may
	// find too few, and never too many.
	Apart bool
}

// Run tests a store against the contract. It calls open for each case; the
// cases run in parallel, so that what they share must end with t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			h.SetNow(epoch)
			c.test(t, h)
		})
	}
	t.Run("differential", func(t *testing.T) {
		t.Parallel()
		Differential(t, open(t), 2000, 1)
	})
	t.Run("differential, leases", func(t *testing.T) {
		t.Parallel()
		DifferentialLeases(t, open(t), 500, 1)
	})
}

type testCase struct {
	name string
	test func(t *testing.T, h Harness)
}

var cases = []testCase{
	{"greedy", greedy},
	{"interval", interval},
	{"interval in two periods", intervalTwice},
	{"aligned", aligned},
	{"aligned, a burst of more than the rate", alignedBurst},
	{"days of a zone", zoneDays},
	{"weeks, months and years of a zone", zonePeriods},
	{"sliding", sliding},
	{"sliding in slots", slidingSlots},
	{"refund of a sliding limit", slidingRefund},
	{"sliding, limit changed", slidingChanged},
	{"sliding, period changed", slidingRegrouped},
	{"sliding, mode changed", slidingMode},
	{"sliding, clock set back", slidingClockBack},
	{"aligned, clock set back", alignedClockBack},
	{"debt", debt},
	{"debt of an interval", debtInterval},
	{"debt of several limits", debtOfSeveral},
	{"debt changed", debtChanged},
	{"debt at a rate of 0", debtRateZero},
	{"debt in a group", debtInGroup},
	{"debt in shadow", debtInShadow},
	{"debt, clock set back", debtClockBack},
	{"ticks of 1 ms", slowTicks},
	{"charge at full within a tick", fullWithinTick},
	{"several limits", severalLimits},
	{"more than the burst", moreThanBurst},
	{"rate of 0", rateZero},
	{"a look writes nothing", lookWritesNothing},
	{"a denial writes nothing", denialWritesNothing},
	{"refund", refund},
	{"refund of an interval", refundInterval},
	{"full bucket takes a refund", refundFull},
	{"limit raised and lowered", limitChanged},
	{"limits matched", limitsMatched},
	{"mode changed", modeChanged},
	{"lease", lease},
	{"lease handed back", leaseHandedBack},
	{"lease beside others", leaseBesideOthers},
	{"lease, clock set back", leaseClockBack},
	{"lease, limit changed", leaseChanged},
	{"lease, limit lowered", leaseCut},
	{"leases, ends together", leaseEndsTogether},
	{"leases, many ends", leaseEnds},
	{"leases, told late", leaseToldLate},
	{"leases, told of more than one has", leaseOfSeveral},
	{"leases, how many are given back", leaseReturned},
	{"leases, many callers", leaseCrowd},
	{"clock set forward", clockForward},
	{"clock set back", clockBack},
	{"clock set back under a look", clockBackLook},
	{"clock set back, limit changed", clockBackChange},
	{"clock set back under a group", clockBackGroup},
	{"no charges", noCharges},
	{"all or none", allOrNone},
	{"group of refund and charge", groupRefund},
	{"one key summed", summed},
	{"one key summed beyond counting", summedHuge},
	{"shadow", shadow},
	{"shadow and group share a key", shadowShares},
	{"shadow after a denial", shadowDenied},
	{"shadow summed", shadowSummed},
	{"keys apart", keysApart},
	{"one bucket, many callers", oneBucket},
	{"two buckets, many callers", twoBuckets},
	{"canceled", canceled},
	{"too late", tooLate},
	{"lengths differ", lengthsDiffer},
}

var epoch = time.Unix(1_700_000_000, 123_456_000)

// fivePer10s is the limit of most cases.
func fivePer10s(refill bucket.Refill) bucket.Limit {
	return bucket.Limit{Tokens: 5, Per: 10 * time.Second, Refill: refill}
}

func limits(t *testing.T, list ...bucket.Limit) *bucket.Limits {
	t.Helper()
	ls, err := bucket.NewLimits(list...)
	if err != nil {
		t.Fatalf("NewLimits(%+v) = %v, want no error", list, err)
	}
	return ls
}

// take makes charges that the store must answer.
func take(t *testing.T, s limiter.Store, charges ...bucket.Charge) []bucket.Result {
	t.Helper()
	results := make([]bucket.Result, len(charges))
	if err := s.Take(t.Context(), charges, results); err != nil {
		t.Fatalf("Take(%v) = %v, want no error", charges, err)
	}
	return results
}

// A moment is one call, and what it must answer.
type moment struct {
	at      time.Duration // since epoch
	charges []bucket.Charge
	want    []bucket.Result
}

// play makes one call after the other.
func play(t *testing.T, h Harness, moments []moment) {
	t.Helper()
	for i, m := range moments {
		h.SetNow(epoch.Add(m.at))
		got := take(t, h.Store, m.charges...)
		if diff := cmp.Diff(m.want, got); diff != "" {
			t.Errorf("moment %d, at %v: Take(%s) (-want +got):\n%s", i, m.at, describe(m.charges), diff)
		}
	}
}

// A step is one charge of a table with a single key.
type step struct {
	at   time.Duration // since epoch
	cost int64
	want bucket.Result
}

// playOne plays steps on one key.
func playOne(t *testing.T, h Harness, ls *bucket.Limits, steps []step) {
	t.Helper()
	moments := make([]moment, len(steps))
	for i, s := range steps {
		charge := bucket.Charge{Key: "one", Limits: ls, Cost: s.cost}
		moments[i] = moment{s.at, []bucket.Charge{charge}, []bucket.Result{s.want}}
	}
	play(t, h, moments)
}

func describe(charges []bucket.Charge) string {
	var text []byte
	for _, c := range charges {
		text = appendCharge(text, c)
	}
	return string(text)
}

// yes is a result of room: what is left, and the time until full.
func yes(left int64, full time.Duration) bucket.Result {
	return bucket.Result{Allowed: true, Remaining: left, FullIn: full}
}

// no is a result of a lack.
func no(left int64, retry, full time.Duration) bucket.Result {
	return bucket.Result{Remaining: left, RetryAfter: retry, FullIn: full}
}

// by returns r as decided by another limit than the first.
func by(limit int, r bucket.Result) bucket.Result {
	r.Limit = limit
	return r
}

const (
	us  = time.Microsecond
	ms  = time.Millisecond
	sec = time.Second
)
