package lease_test

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/lease"
)

// TestFleet has replicas lease from one bucket: what they admit in any span is
// the burst at most, and what came in that span. Calls may be lost either way;
// the replicas' clocks go wrong a little, each its own way; replicas die; and the
// store's clock is set back. Calls that are slow take up to as long as a lease
// lasts and may be done when nobody waits any more, and leases are looked after
// late; then the clock is not set back by about as much as they take.
func TestFleet(t *testing.T) {
	t.Parallel()
	for name, slow := range map[string]bool{"slow": true, "quick": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var done fleetTally
			for seed := range uint64(9) {
				for i, l := range []bucket.Limit{
					{Tokens: 1000, Per: time.Second, Burst: 200},
					{Tokens: 20_000, Per: time.Second, Burst: 400},
					{Tokens: 40, Per: time.Second, Burst: 90},
				} {
					f := newFleet(t, limits(t, l), rand.New(rand.NewPCG(seed, uint64(i))))
					f.lasts, f.rough, f.slow, f.done = []time.Duration{10, 100, 1000}[seed%3]*time.Millisecond, true, slow, &done
					f.run(400)
				}
			}
			t.Logf("%+v", done)
			if done.spent == 0 || done.plain == 0 || done.asked == 0 || done.leases == 0 || done.reported == 0 || done.late == 0 ||
				done.lost == 0 || done.died == 0 || done.back == 0 {
				t.Errorf("%+v happened, want some of each", done)
			}
		})
	}
}

// TestFleetCalm has replicas lease from one bucket, whose calls are all answered
// in time: once all is given back, what was admitted and what is left are the
// burst.
func TestFleetCalm(t *testing.T) {
	t.Parallel()
	var done fleetTally
	for seed := range uint64(12) {
		ls := limits(t, bucket.Limit{Tokens: 1, Per: time.Hour, Burst: 3000})
		f := newFleet(t, ls, rand.New(rand.NewPCG(seed, 9)))
		f.lasts, f.done = []time.Duration{10, 100, 1000}[seed%3]*time.Millisecond, &done
		f.run(400)
		left := f.bucket.Settle(f.ls, f.store()).Result(f.ls, 0, true).Remaining
		if left+f.admitted != 3000 {
			t.Errorf("seed %d: %d were admitted and %d are left, want 3000 in all", seed, f.admitted, left)
		}
	}
	t.Logf("%+v", done)
	if done.spent == 0 || done.plain == 0 || done.leases == 0 || done.reported == 0 || done.late > 0 || done.lost > 0 {
		t.Errorf("%+v happened, want some of each, and nothing lost or late", done)
	}
}

// A fleetTally is how often what happened.
type fleetTally struct{ spent, plain, asked, leases, reported, late, lost, died, back int }

// A fleet is Holders that lease from one Bucket. It has a time of its own.
type fleet struct {
	*rand.Rand
	t        *testing.T
	ls       *bucket.Limits // without a lease
	lasts    time.Duration  // a lease
	rough    bool           // there are faults
	slow     bool           // calls are, by far
	bucket   bucket.Bucket
	replicas [4]replica
	now      time.Duration // since epoch
	behind   time.Duration // the store's clock
	coming   comings
	done     *fleetTally

	admitted int64
	// What a bucket lacks that was charged with what was admitted, when it was:
	// in tokens times Per, in µs.
	level int64
	at    time.Duration
}

// A replica is a Holder with its own clock, which gains a part of the time.
type replica struct {
	*lease.Holder
	part time.Duration
}

var epoch = time.Unix(1_700_000_000, 123_456_000)

func newFleet(t *testing.T, ls *bucket.Limits, rnd *rand.Rand) *fleet {
	t.Helper()
	f := &fleet{Rand: rnd, t: t, ls: ls}
	for i, part := range []time.Duration{-128, 128, 1000, -100_000} {
		f.replicas[i] = replica{new(lease.Holder), part}
	}
	return f
}

func (f *fleet) clock(r *replica) time.Time { return epoch.Add(f.now + f.now/r.part) }

func (f *fleet) store() time.Time { return epoch.Add(f.now - f.behind) }

// A coming is what happens at a time.
type coming struct {
	at time.Duration
	do func()
}

type comings []coming

func (c comings) Len() int           { return len(c) }
func (c comings) Less(i, j int) bool { return c[i].at < c[j].at }
func (c comings) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }
func (c *comings) Push(x any)        { *c = append(*c, x.(coming)) }
func (c *comings) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

func (f *fleet) after(d time.Duration, do func()) {
	heap.Push(&f.coming, coming{f.now + max(d, 0).Truncate(time.Microsecond), do})
}

// run takes so many steps, and waits until nothing is to come.
func (f *fleet) run(steps int) {
	for range steps {
		f.step(&f.replicas[f.IntN(len(f.replicas))])
		f.until(f.now + f.pause())
	}
	for len(f.coming) > 0 {
		f.until(f.coming[0].at)
	}
}

func (f *fleet) until(now time.Duration) {
	for len(f.coming) > 0 && f.coming[0].at <= now {
		next := heap.Pop(&f.coming).(coming)
		f.now = max(f.now, next.at)
		next.do()
	}
	f.now = now
}

func (f *fleet) step(r *replica) {
	switch n := f.IntN(40); {
	case n == 0 && f.rough:
		f.done.died++
		r.Holder = new(lease.Holder)
	case n == 1 && f.rough:
		f.done.back++
		f.behind += f.setBack()
	case n < 5:
		f.drain()
	case n < 10:
		for range 12 {
			f.charge(r, 1)
		}
	default:
		for range f.IntN(12) {
			f.charge(r, 1+f.Int64N(3))
		}
	}
}

func (f *fleet) setBack() time.Duration {
	switch {
	case f.IntN(4) == 0:
		return f.upTo(f.lasts) + 2*f.lasts
	case f.slow:
		return f.upTo(max(f.lasts/64, time.Millisecond))
	default:
		return f.upTo(max(f.lasts/8, 4*time.Millisecond))
	}
}

func (f *fleet) upTo(d time.Duration) time.Duration { return time.Duration(f.Int64N(int64(d) + 1)) }

// pause is none, a part of a lease, or what tempts: until just before one stops.
func (f *fleet) pause() time.Duration {
	r := &f.replicas[f.IntN(len(f.replicas))]
	if granted, _, stops := r.Held(); granted > 0 && f.IntN(3) == 0 {
		if left := stops.Sub(f.clock(r)) + f.upTo(10*time.Microsecond) - 5*time.Microsecond; left > 0 {
			return left.Truncate(time.Microsecond)
		}
	}
	if f.IntN(3) == 0 {
		return 0
	}
	return (f.upTo(f.lasts) / time.Duration(1+f.IntN(20))).Truncate(time.Microsecond)
}

// drain admits all that there is, everywhere, at once.
func (f *fleet) drain() {
	for i := range f.replicas {
		for f.charge(&f.replicas[i], 1) == lease.Spend {
		}
	}
	if f.rough {
		f.take(f.bucket.Settle(f.ls, f.store()).Result(f.ls, 0, true).Remaining, nil)
	}
}

// charge has r charge cost.
func (f *fleet) charge(r *replica, cost int64) lease.Way {
	held := f.ls.Leasing(3000, f.lasts)
	holder, c := r.Holder, r.Decide(f.clock(r), held, cost)
	switch c.Way {
	case lease.Spend:
		f.done.spent++
		f.admit(cost)
	case lease.Plain:
		f.done.plain++
		f.call(cost, nil, func(bucket.Result, bool) {})
	case lease.Ask:
		f.done.asked++
		l := &c.Lease
		f.call(cost, l, func(result bucket.Result, answered bool) {
			if !answered {
				holder.Failed(f.clock(r))
				return
			}
			holder.Answered(f.clock(r), l, result)
			if granted, _, stops := holder.Held(); granted > 0 {
				f.done.leases++
				f.wake(r, holder, stops)
			}
		})
	}
	return c.Way
}

// wake has holder give back what it holds when it stops, or later.
func (f *fleet) wake(r *replica, holder *lease.Holder, stops time.Time) {
	in := stops.Sub(f.clock(r))*r.part/(r.part+1) + 2*time.Microsecond // that clock goes wrong
	if f.slow && f.IntN(4) == 0 {
		in += f.upTo(f.lasts)
	}
	f.after(in, func() {
		granted, _, stops := holder.Held()
		if granted == 0 || f.clock(r).Before(stops) || holder != r.Holder {
			return
		}
		l := holder.End(f.clock(r))
		f.call(0, &l, func(bucket.Result, bool) {})
	})
}

// call has the store take cost, and tells what becomes of that: nothing, after
// a while, if it takes too long.
func (f *fleet) call(cost int64, l *bucket.Lease, tell func(r bucket.Result, answered bool)) {
	there, back, patience := f.trip(), f.trip(), f.lasts*3/4
	if f.rough && f.IntN(20) == 0 {
		f.done.lost++
		f.after(patience, func() { tell(bucket.Result{}, false) })
		return
	}
	inTime := there+back < patience && (!f.rough || f.IntN(20) > 0)
	if !inTime {
		f.done.lost++
		f.after(patience, func() { tell(bucket.Result{}, false) })
	}
	f.after(there, func() {
		r := f.take(cost, l)
		if inTime {
			f.after(back, func() { tell(r, true) })
		}
	})
}

// trip is how long a message takes.
func (f *fleet) trip() time.Duration {
	switch {
	case f.slow && f.IntN(4) == 0:
		return f.upTo(f.lasts)
	case f.rough:
		return f.lasts/128 + f.upTo(f.lasts/128) // about as long there as back
	default:
		return f.upTo(f.lasts / 64)
	}
}

// take charges the bucket.
func (f *fleet) take(cost int64, l *bucket.Lease) bucket.Result {
	if l != nil && l.Back > 0 {
		if f.done.reported++; f.store().UnixMicro() >= l.Ends || f.store().UnixMicro() < l.Since {
			f.done.late++
		}
	}
	b, r := f.bucket.Charge(&bucket.Charge{Limits: f.ls, Cost: cost, Lease: l}, f.store())
	f.bucket = b
	if r.Allowed && cost > 0 {
		f.admit(cost)
	}
	return r
}

// admit admits n, and holds that against the limit.
func (f *fleet) admit(n int64) {
	f.t.Helper()
	l := f.ls.At(0)
	f.level = max(f.level-l.Tokens*(f.now-f.at).Microseconds(), 0) + n*l.Per.Microseconds()
	f.admitted, f.at = f.admitted+n, f.now
	if over := f.level - l.Burst*l.Per.Microseconds(); over > 0 {
		f.t.Fatalf("%+v, leased for %v: after %v %d tokens too many are admitted", l, f.lasts, f.now, over/l.Per.Microseconds()+1)
	}
}

// TestClockBack sets the store's clock back between two leases and the report of
// the first, by as much as is not seen and by more: the tokens of the second are
// leased until it stops, and those of the first given back only where the clock
// was set back by little or not at all.
func TestClockBack(t *testing.T) {
	t.Parallel()
	const ms, slack = time.Millisecond, lasts / 64
	for _, trip := range []struct{ there, back time.Duration }{{0, 0}, {ms, 2 * ms}, {0, 5 * ms}, {4 * ms, ms}} {
		for by := time.Duration(0); by <= 60*ms; by += 250 * time.Microsecond {
			ls := leasing(t)
			var b bucket.Bucket
			var first, second lease.Holder
			store := func(at time.Duration, c bucket.Charge) bucket.Result {
				var r bucket.Result
				b, r = b.Charge(&c, epoch.Add(at))
				return r
			}
			hold := func(h *lease.Holder, at time.Duration) {
				var c lease.Choice
				for range 8 {
					c = h.Decide(epoch.Add(at), ls, 1)
				}
				r := store(at+trip.there, bucket.Charge{Limits: ls, Cost: 1, Lease: &c.Lease})
				h.Answered(epoch.Add(at+trip.there+trip.back), &c.Lease, r)
			}
			hold(&first, 0)
			hold(&second, 40*ms)
			store(61*ms, bucket.Charge{Limits: ls, Cost: 1})
			store(61*ms-by, bucket.Charge{Limits: ls, Cost: 1}) // which moves the bucket
			over := first.End(epoch.Add(70 * ms))
			store(70*ms+trip.there-by, bucket.Charge{Limits: ls, Lease: &over})
			left := store(70*ms+trip.there-by, bucket.Charge{Limits: ls}).Remaining
			_, _, stops := second.Held()
			leased := int64(0)
			for _, e := range b.Settle(ls, stops.Add(-by)).Parts(ls)[0].Log {
				leased += e.Tokens
			}
			if leased < 100 {
				t.Errorf("%v there, %v back, clock set back by %v: %d tokens are leased when a lease of 100 stops", trip.there, trip.back, by, leased)
			}
			want := int64(1000 - 4 - 200)
			if by <= slack+trip.back+trip.there {
				want += 100
			}
			if left != want {
				t.Errorf("%v there, %v back, clock set back by %v: %d are left after the report, want %d", trip.there, trip.back, by, left, want)
			}
		}
	}
}
