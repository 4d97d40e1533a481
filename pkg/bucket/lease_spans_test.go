package bucket_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// TestLeasedSpans has replicas take tokens ahead and spend them on their own
// until the last moment, with answers lost, reports lost or late, replicas that
// die and a clock that is set back, and holds what was admitted in every span
// against the burst and what came in that span.
func TestLeasedSpans(t *testing.T) {
	t.Parallel()
	var done fleetTally
	for seed := range uint64(12) {
		for i, l := range []bucket.Limit{
			{Tokens: 1000, Per: sec, Burst: 200},
			{Tokens: 40, Per: sec, Burst: 90},
			{Tokens: 7, Per: 3 * sec, Burst: 4},
			{Tokens: 333_331, Per: 1_000_003 * ms, Burst: 9_000_000_000}, // in ticks of 1 ms
		} {
			f := &fleet{
				Rand: rand.New(rand.NewPCG(seed, uint64(i))), t: t, limit: l, ls: mustLimits(t, l), done: &done,
				lasts: []time.Duration{10 * ms, 100 * ms, sec}[seed%3],
			}
			f.run(600)
			spans(t, l, f.list)
		}
	}
	t.Logf("%+v", done)
	if done.local == 0 || done.reported == 0 || done.voided == 0 || done.lost == 0 || done.died == 0 || done.back == 0 {
		t.Errorf("%+v happened, want some of each", done)
	}
}

type fleetTally struct{ charged, denied, leases, local, reported, voided, lost, died, back int }

// A fleet is replicas that lease from one bucket.
type fleet struct {
	*rand.Rand
	t      *testing.T
	limit  bucket.Limit
	ls     *bucket.Limits
	lasts  time.Duration // a lease
	bucket bucket.Bucket
	real   time.Duration // since epoch
	behind time.Duration // the store's clock
	has    [4]leaseHeld
	list   []admission
	done   *fleetTally
}

// leaseHeld is what a replica knows of its lease, by its own clock.
type leaseHeld struct {
	granted, spent int64
	told           int64 // when it ends, by the store's clock
	answered, stop time.Duration
}

func (f *fleet) margin() time.Duration { return max(ms, f.lasts/64) }

func (f *fleet) run(steps int) {
	for range steps {
		switch h := &f.has[f.IntN(len(f.has))]; f.IntN(20) {
		case 0:
			if h.granted > 0 {
				f.done.died++
			}
			*h = leaseHeld{}
		case 1:
			f.setBack()
		case 2, 3:
			f.charge(h, 0)
		case 8:
			f.drain()
		case 4, 5, 6, 7:
			f.charge(h, 1+f.Int64N(3))
		default:
			f.spend(h, 1+f.Int64N(8))
		}
		f.real += f.pause()
	}
}

// pause is short, or what tempts: the time to the end of a lease.
func (f *fleet) pause() time.Duration {
	h := &f.has[f.IntN(len(f.has))]
	if left := h.stop - f.real; left > 0 && f.IntN(4) == 0 {
		return left - us
	}
	if f.IntN(3) == 0 {
		return 0
	}
	return time.Duration(f.Int64N(int64(f.lasts)) / (1 + f.Int64N(20))).Truncate(us)
}

func (f *fleet) setBack() {
	f.done.back++
	f.behind += time.Duration(f.Int64N(int64(f.lasts))).Truncate(us)
	if f.IntN(2) == 0 {
		f.behind += f.lasts
	}
}

// drain admits all that there is, everywhere, at once.
func (f *fleet) drain() {
	for i := range f.has {
		f.spend(&f.has[i], f.limit.Burst)
	}
	now := epoch.Add(f.real - f.behind)
	if n := f.bucket.Settle(f.ls, now).Result(f.ls, 0, true).Remaining; n > 0 {
		f.bucket, _ = f.bucket.Take(f.ls, now, n)
		f.admit(n)
	}
}

// spend admits on the lease alone, up to n.
func (f *fleet) spend(h *leaseHeld, n int64) {
	n = min(h.granted-h.spent, n)
	if n <= 0 || f.real >= h.stop {
		return
	}
	f.done.local++
	h.spent += n
	f.admit(n)
}

func (f *fleet) admit(n int64) { f.list = append(f.list, admission{epoch.Add(f.real), n}) }

// charge asks the store, says what became of the lease and wants another. The
// question takes its time, and so does the answer, which may be lost.
func (f *fleet) charge(h *leaseHeld, cost int64) {
	began := f.real
	lease := &bucket.Lease{
		Want: 1 + f.Int64N(f.limit.Burst/2), For: f.lasts, Back: h.granted, Spent: h.spent, Ends: h.told - f.margin().Microseconds(),
		Since: h.told + (began - h.answered - f.lasts - f.margin()).Microseconds(),
	}
	*h = leaseHeld{}
	f.real += time.Duration(f.Int64N(int64(2 * ms))).Truncate(us)
	if f.IntN(10) == 0 {
		f.done.lost++ // on the way there
		return
	}
	before := f.bucket
	var r bucket.Result
	f.bucket, r = before.Charge(&bucket.Charge{Limits: f.ls, Cost: cost, Lease: lease}, epoch.Add(f.real-f.behind))
	f.count(lease, before, r)
	if r.Allowed && cost > 0 {
		f.admit(cost)
	}
	f.real += time.Duration(f.Int64N(int64(2 * ms))).Truncate(us)
	if f.IntN(10) == 0 {
		f.done.lost++
		return
	}
	*h = leaseHeld{granted: lease.Granted, told: lease.GrantEnds, answered: f.real, stop: began + f.lasts - f.margin()}
}

func (f *fleet) count(l *bucket.Lease, before bucket.Bucket, r bucket.Result) {
	f.done.charged++
	if !r.Allowed {
		f.done.denied++
	}
	if l.Granted > 0 {
		f.done.leases++
	}
	if l.Back == 0 {
		return
	}
	silent := *l
	silent.Back = 0
	quiet, _ := before.Charge(&bucket.Charge{Limits: f.ls, Lease: &silent}, epoch.Add(f.real-f.behind))
	told := *l
	heard, _ := before.Charge(&bucket.Charge{Limits: f.ls, Lease: &told}, epoch.Add(f.real-f.behind))
	if fmt.Sprint(quiet.Parts(f.ls)) == fmt.Sprint(heard.Parts(f.ls)) {
		f.done.voided++
	} else {
		f.done.reported++
	}
}
