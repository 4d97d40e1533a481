package bucket_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// epoch is where the clock of most tests starts.
var epoch = time.Unix(1_700_000_000, 123_456_000)

func mustLimits(t testing.TB, list ...bucket.Limit) *bucket.Limits {
	t.Helper()
	ls, err := bucket.NewLimits(list...)
	if err != nil {
		t.Fatalf("NewLimits(%+v) = %v, want no error", list, err)
	}
	return ls
}

// A tape is what a fuzzed run does, read byte by byte.
type tape []byte

// next returns a number below n.
func (p *tape) next(n int) int {
	if len(*p) == 0 {
		return 0
	}
	b := (*p)[0]
	*p = (*p)[1:]
	return int(b) % n
}

func (p *tape) plan() plan {
	if p.next(3) == 0 { // what can be leased
		return plan{limits: []bucket.Limit{{Tokens: int64(1 + p.next(200)), Per: sec, Burst: int64(1 + p.next(200))}}}
	}
	list := make([]bucket.Limit, 1+p.next(3))
	for i := range list {
		list[i] = p.limit()
	}
	debt := p.next(4) == 0
	for _, l := range list {
		debt = debt && l.Refill <= bucket.Interval
	}
	made := plan{limits: list, debt: debt, most: int64(p.next(3) * p.next(256))}
	made.debt = debt && !made.inTicks()
	return made
}

// inTicks says that debt has a greedy limit counted in ticks of 1 ms, which the
// oracle knows nothing of.
func (p plan) inTicks() bool {
	ls, err := bucket.NewDebtLimits(p.most, p.limits...)
	for i := range p.limits {
		if err == nil && p.limits[i].Refill == bucket.Greedy && ls.Terms(i).Tick > 1 {
			return true
		}
	}
	return false
}

// zones are where the clocks do what they can.
var zones = []*time.Location{
	zone("Europe/Berlin"),
	zone("America/Havana"),      // set back from 1:00 to midnight
	zone("Asia/Beirut"),         // set forward at midnight, back from midnight to 23:00
	zone("Australia/Lord_Howe"), // by half an hour
	zone("Asia/Kathmandu"),      // 5:45 ahead
}

func zone(name string) *time.Location {
	z, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return z
}

func (p *tape) limit() bucket.Limit {
	l := bucket.Limit{
		Name:   []string{"", "", "a", "b"}[p.next(4)],
		Tokens: int64(1 + p.next(20)),
		Per: []time.Duration{
			time.Millisecond, 7 * time.Millisecond, time.Second, 1001 * time.Millisecond, 10 * time.Second, time.Minute, 24 * time.Hour,
		}[p.next(7)],
		Refill: bucket.Refill(p.next(4)),
	}
	if l.Refill == bucket.Sliding {
		return l
	}
	if l.Refill == bucket.Aligned && p.next(4) == 0 {
		l.Zone = zones[p.next(len(zones))]
		l.Calendar = bucket.Calendar(1 + p.next(3))
		l.Per = map[bucket.Calendar]time.Duration{bucket.Day: 24 * time.Hour, bucket.Week: 168 * time.Hour, bucket.Month: 720 * time.Hour}[l.Calendar]
		l.Burst = l.Tokens * int64(1+p.next(4))
		return l
	}
	switch p.next(8) {
	case 0:
		l.Burst = int64(1 + p.next(100))
	case 1:
		l.Burst = l.Tokens * int64(1+p.next(4))
	case 2:
		l.Tokens *= 997
	case 3:
		l.Tokens *= int64(p.next(4) / 3)
	}
	return l
}

// cost returns mostly 1, and sometimes anything.
func (p *tape) cost(l bucket.Limit) int64 {
	switch p.next(12) {
	case 0:
		return 0
	case 1:
		return -int64(p.next(256))
	case 2:
		return l.Burst
	case 3:
		return []int64{1<<63 - 1, -1 << 63, 1 << 53, 1<<53 - 1}[p.next(4)]
	case 4, 5:
		return int64(p.next(256))
	case 6, 7:
		return int64(p.next(16))
	default:
		return 1
	}
}

// wait returns how far to set the clock on, after the result last under l.
func (p *tape) wait(l bucket.Limit, last bucket.Result) time.Duration {
	soon := last.RetryAfter
	if soon == bucket.Never || last.Allowed {
		soon = last.FullIn
	}
	switch p.next(9) {
	case 0:
		return 0
	case 1:
		return time.Duration(p.next(256)) * time.Microsecond
	case 2:
		return time.Duration(p.next(256)) * time.Millisecond
	case 3:
		return (l.Per * time.Duration(p.next(256)) / 64).Truncate(time.Microsecond)
	case 4:
		return soon
	case 5:
		return soon - time.Microsecond
	case 6:
		return (soon / time.Duration(1+p.next(16))).Truncate(time.Microsecond)
	case 7:
		return -(l.Per * time.Duration(p.next(256)) / 64).Truncate(time.Microsecond)
	default:
		return l.Per
	}
}

func mustCompile(t testing.TB, p plan) *bucket.Limits {
	t.Helper()
	if !p.debt {
		return mustLimits(t, p.limits...)
	}
	ls, err := bucket.NewDebtLimits(p.most, p.limits...)
	if err != nil {
		t.Fatalf("NewDebtLimits(%d, %+v) = %v, want no error", p.most, p.limits, err)
	}
	return ls
}

// A tally is what a run has tried.
type tally struct{ decisions, denied, overdrawn, refunds, back, changes, modes, leases, ended int }

func (a *tally) add(b tally) {
	a.decisions += b.decisions
	a.denied += b.denied
	a.overdrawn += b.overdrawn
	a.refunds += b.refunds
	a.back += b.back
	a.changes += b.changes
	a.modes += b.modes
	a.leases += b.leases
	a.ended += b.ended
}

func (a *tally) String() string {
	return fmt.Sprintf("%d decisions: %d denied, of which %d charged as debt; %d refunds; the clock set back %d times; limits changed %d times, with a mode %d times; %d leases, %d reported",
		a.decisions, a.denied, a.overdrawn, a.refunds, a.back, a.changes, a.modes, a.leases, a.ended)
}

// count notes a decision.
func (a *tally) count(ls *bucket.Limits, cost int64, r bucket.Result) {
	a.decisions++
	if cost < 0 {
		a.refunds++
	}
	if !r.Allowed {
		a.denied++
		if ls.Owes(cost) {
			a.overdrawn++
		}
	}
}

// run plays a tape on a Bucket and on the oracle.
func run(t *testing.T, p tape) (done tally) {
	t.Helper()
	plans := []plan{p.plan(), p.plan(), p.plan()}
	compiled := make([]*bucket.Limits, len(plans))
	for i := range plans {
		compiled[i] = mustCompile(t, plans[i])
	}
	var (
		b    bucket.Bucket
		o    oracle
		last bucket.Result
		now  = epoch
		v    int
		held []bucket.Lease
	)
	for len(p) > 0 {
		if next := p.next(36); next < len(plans) && next != v {
			done.changes++
			if plans[next].limits[0].Refill != plans[v].limits[0].Refill {
				done.modes++
			}
			v = next
		}
		l := compiled[v].At(p.next(compiled[v].Len()))
		wait := p.wait(l, last)
		if len(held) > 0 && p.next(6) == 0 {
			wait = time.UnixMicro(held[p.next(len(held))].GrantEnds + int64(p.next(3)-1)).Sub(now)
		}
		if now = now.Add(wait); wait < 0 {
			done.back++
		}
		if now.Before(almanacFrom.AddDate(0, 2, 0)) || now.After(almanacTo.AddDate(-1, 0, 0)) {
			now = epoch
		}
		cost := p.cost(l)
		charge := bucket.Charge{Limits: compiled[v], Cost: cost}
		if p.next(3) == 0 {
			charge.Lease = p.lease(&held, now)
		}
		lease := copied(charge.Lease)
		next, got := b.Charge(&charge, now)
		want := o.take(plans[v], now.UnixMicro(), cost, lease)
		if diff := cmp.Diff(lease, charge.Lease); diff != "" {
			t.Fatalf("Charge(%+v, epoch+%v, %d) of %+v: its Lease (-want +got):\n%s", plans[v], now.Sub(epoch), cost, b, diff)
		}
		if done.heldBy(&held, lease); got != want {
			t.Fatalf("Charge(%+v, epoch+%v, %d) of %+v, charged under %+v (-want +got):\n%s", plans[v], now.Sub(epoch), cost, b, o.plan, cmp.Diff(want, got))
		}
		if charge.Lease == nil {
			laws(t, compiled[v], now, cost, b, next, got)
		}
		done.count(compiled[v], cost, got)
		b, last = next, got
	}
	return done
}

// laws holds next and r, that came of charging b, against what must be true of
// any charge.
func laws(t *testing.T, ls *bucket.Limits, now time.Time, cost int64, b, next bucket.Bucket, r bucket.Result) {
	t.Helper()
	owes := ls.Owes(cost) && !ls.Closed()
	if !owes && (!r.Allowed || cost == 0) {
		kept := b
		if !r.Allowed {
			kept = b.Moved(now)
		}
		if !reflect.DeepEqual(kept, next) {
			t.Fatalf("Take(%d) = %+v, and changed the bucket:\n%s", cost, r, cmp.Diff(kept, next, inside, cmp.Comparer(sameLimits)))
		}
	}
	if !r.Allowed {
		lawRetry(t, ls, now, cost, next, r)
		return
	}
	if ls.Debt() {
		return
	}
	if _, more := next.Take(ls, now, r.Remaining); !more.Allowed {
		t.Fatalf("Take(what remains: %d) = %+v, want allowed", r.Remaining, more)
	}
	if _, more := next.Take(ls, now, r.Remaining+1); more.Allowed {
		t.Fatalf("Take(one more than remains: %d) = %+v, want denied", r.Remaining+1, more)
	}
}

// inside compares what is not exported too.
var inside = cmp.Exporter(func(reflect.Type) bool { return true })

func sameLimits(a, b *bucket.Limits) bool { return a == b }

// lawRetry holds the wait of a denied charge to its word.
func lawRetry(t *testing.T, ls *bucket.Limits, now time.Time, cost int64, b bucket.Bucket, r bucket.Result) {
	t.Helper()
	if r.RetryAfter == bucket.Never {
		if _, again := b.Take(ls, now.Add(r.FullIn), cost); again.Allowed {
			t.Fatalf("Take(%d) = %+v, and is allowed when full", cost, r)
		}
		return
	}
	if _, again := b.Take(ls, now.Add(r.RetryAfter), cost); !again.Allowed {
		t.Fatalf("Take(%d) = %+v, and after that wait %+v", cost, r, again)
	}
	if fullSooner(now, b, r) || leasing(b, ls, now) {
		return
	}
	if _, again := b.Take(ls, now.Add(r.RetryAfter-time.Microsecond), cost); again.Allowed {
		t.Fatalf("Take(%d) = %+v, and is allowed a microsecond sooner; %+v at %v under %+v", cost, r, b, now, ls.At(r.Limit))
	}
}

// fullSooner says that b, denied with r, is full before its limits say so: it
// was charged under faster ones, or is aligned and the clock was set back.
func fullSooner(now time.Time, b bucket.Bucket, r bucket.Result) bool {
	_, full := b.At()
	return full.Before(now.Add(max(r.RetryAfter, r.FullIn)))
}

func randomTape(rnd *rand.Rand, n int) tape {
	p := make(tape, n)
	for i := range p {
		p[i] = byte(rnd.Uint32())
	}
	return p
}

func FuzzTake(f *testing.F) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for n := 16; n <= 512; n *= 2 {
		f.Add([]byte(randomTape(rnd, n)))
	}
	f.Fuzz(func(t *testing.T, steps []byte) { _ = run(t, steps[:min(len(steps), 1000)]) })
}

// TestTakeEqualsOracle makes ten million decisions with SLUICE_TEST_LONG, else a
// share of them.
//
//	SLUICE_TEST_LONG=1 go test -count=1 -v -timeout 1h -run TestTakeEqualsOracle ./pkg/bucket
func TestTakeEqualsOracle(t *testing.T) {
	t.Parallel()
	wanted := 20_000
	if os.Getenv("SLUICE_TEST_LONG") != "" {
		wanted = 10_000_000
	}
	var (
		mu   sync.Mutex
		done tally
		seed atomic.Uint64
	)
	t.Cleanup(func() { t.Log(done.String()) })
	for worker := range runtime.GOMAXPROCS(0) {
		t.Run(fmt.Sprint("worker ", worker), func(t *testing.T) {
			t.Parallel()
			for enough := false; !enough; {
				one := run(t, randomTape(rand.New(rand.NewPCG(seed.Add(1), 0)), 4000))
				mu.Lock()
				done.add(one)
				enough = done.decisions >= wanted
				mu.Unlock()
			}
		})
	}
}
