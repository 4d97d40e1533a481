package bucket_test

import (
	"math/rand/v2"
	"reflect"
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
	list := make([]bucket.Limit, 1+p.next(3))
	for i := range list {
		list[i] = p.limit()
	}
	debt := p.next(4) == 0
	for _, l := range list {
		debt = debt && l.Refill <= bucket.Interval
	}
	return plan{limits: list, debt: debt, most: int64(p.next(3) * p.next(256))}
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

// run plays a tape on a Bucket and on the oracle.
func run(t *testing.T, p tape) {
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
	)
	for len(p) > 0 {
		if p.next(12) == 0 {
			v = p.next(len(plans))
		}
		l := compiled[v].At(p.next(compiled[v].Len()))
		now = now.Add(p.wait(l, last))
		if now.Before(almanacFrom.AddDate(0, 2, 0)) || now.After(almanacTo.AddDate(-1, 0, 0)) {
			now = epoch
		}
		cost := p.cost(l)
		next, got := b.Take(compiled[v], now, cost)
		want := o.take(plans[v], now.UnixMicro(), cost)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("Take(%+v, epoch+%v, %d) of %+v, charged under %+v (-want +got):\n%s", plans[v], now.Sub(epoch), cost, b, o.plan, diff)
		}
		laws(t, compiled[v], now, cost, b, next, got)
		b, last = next, got
	}
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
		if diff := cmp.Diff(kept, next, inside, cmp.Comparer(sameLimits)); diff != "" {
			t.Fatalf("Take(%d) = %+v, and changed the bucket:\n%s", cost, r, diff)
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
	if fullSooner(now, b, r) {
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
	f.Fuzz(func(t *testing.T, steps []byte) { run(t, steps[:min(len(steps), 1000)]) })
}

func TestTakeEqualsOracle(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		run(t, randomTape(rand.New(rand.NewPCG(seed, 0)), 2000))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
