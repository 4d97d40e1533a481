package redisstore_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/redisstore"
	"github.com/sluice-mesh/sluice/test/servers"
)

// A pair are two stores on one server, each under keys of its own. Of the same
// requests one makes all in one call, the other each in a call of its own.
type pair struct {
	together, inTurn *redisstore.Store
	admin            *redis.Client
	now              clock
	full             time.Duration    // from the last call until one of its buckets is full
	own              []*bucket.Limits // of each key, most of the time
	*rand.Rand
}

// TestInTurn makes requests of every kind in one call, most of which ask the
// same, and wants what each alone in turn is answered, and the same stored. There
// are leases, and values that are no buckets, and the clock is set back now and
// then.
func TestInTurn(t *testing.T) {
	t.Parallel()
	for _, kind := range servers.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			server := servers.Start(t, kind, servers.Options{Socket: true})
			p := &pair{admin: client(t, server), Rand: rand.New(rand.NewPCG(9, 1))}
			p.now.Store(1_700_000_000_000_000)
			o := redisstore.Options{URL: server.URL(), Deadline: patience, Now: p.now.time}
			o.KeyPrefix = "0:"
			p.together = open(t, o)
			o.KeyPrefix = "1:"
			p.inTurn = open(t, o)
			versions := everyLimits(t)
			for call := range 600 {
				p.move()
				p.spoil(t)
				if diff := p.take(t, p.groups(versions)); diff != "" {
					t.Fatalf("call %d (-in turn +together):\n%s", call, diff)
				}
			}
		})
	}
}

// move moves the clock: little, much, to where a period ends or a bucket is
// about full, or back.
func (p *pair) move() {
	switch now := p.now.Load(); p.IntN(12) {
	case 0:
		p.now.Add(-p.Int64N(3_000_000))
	case 1:
		p.now.Store(now - now%5_000_000 + 5_000_000 - p.Int64N(2))
	case 2:
		p.now.Add(p.Int64N(100_000_000))
	case 3, 4:
	case 5, 6, 7, 8:
		p.now.Add(max(p.full.Microseconds()-p.Int64N(2000), 0))
	default:
		p.now.Add(p.Int64N(1_000_000))
	}
}

var turnKeys = []string{"a", "b", "c", "d", "e", "f", "g"}

// spoil has something else stored under a key, or nothing, now and then.
func (p *pair) spoil(t *testing.T) {
	key, values := turnKeys[p.IntN(len(turnKeys))], foreignValues()
	value, n := values[p.IntN(len(values))], p.IntN(20)
	for _, prefix := range []string{"0:", "1:"} {
		switch n {
		case 0:
			p.admin.Set(t.Context(), prefix+key, value, 0)
		case 1, 2:
			p.admin.Del(t.Context(), prefix+key)
		}
	}
}

// take makes the charges of groups by both stores, and says what differs.
func (p *pair) take(t *testing.T, groups [][]bucket.Charge) string {
	t.Helper()
	again := make([][]bucket.Charge, len(groups))
	for i := range groups {
		again[i] = withOwnLeases(groups[i])
	}
	got, want := resultsFor(groups), resultsFor(groups)
	if err := p.together.TakeEach(t.Context(), groups, got); err != nil {
		t.Fatalf("TakeEach() = %v, want no error", err)
	}
	for i := range again {
		if err := p.inTurn.Take(t.Context(), again[i], want[i]); err != nil {
			t.Fatalf("Take() = %v, want no error", err)
		}
	}
	p.full = want[len(want)-1][0].FullIn
	return cmp.Diff(p.outcome(t, "1:", again, want), p.outcome(t, "0:", groups, got))
}

// outcome is all that came of groups: results, leases and what is stored.
func (p *pair) outcome(t *testing.T, prefix string, groups [][]bucket.Charge, results [][]bucket.Result) (all []any) {
	t.Helper()
	for i := range groups {
		for j, r := range results[i] {
			failed := causeOf(r.Err)
			r.Err = nil
			all = append(all, r, failed)
			if l := groups[i][j].Lease; l != nil {
				all = append(all, *l)
			}
		}
	}
	for _, key := range turnKeys {
		all = append(all, p.admin.Get(t.Context(), prefix+key).Val())
	}
	return all
}

func withOwnLeases(charges []bucket.Charge) []bucket.Charge {
	charges = slices.Clone(charges)
	for i := range charges {
		if l := charges[i].Lease; l != nil {
			own := *l
			charges[i].Lease = &own
		}
	}
	return charges
}

// usualSets is how many of everyLimits have a short way.
const usualSets = 8

// everyLimits are of all modes, the usual first; some are equal, some come near
// the most there can be.
func everyLimits(t *testing.T) []*bucket.Limits {
	ten := bucket.Limit{Tokens: 30, Per: 10 * time.Second}
	all := [][]bucket.Limit{
		{ten},
		{ten},
		{{Tokens: 30, Per: 10 * time.Second, Burst: 300}},
		{{Tokens: 40, Per: 7 * time.Second, Refill: bucket.Interval}},
		{{Tokens: 25, Per: 5 * time.Second, Refill: bucket.Aligned}},
		{{Tokens: 3, Per: time.Millisecond, Burst: 100}},
		{{Tokens: 20, Per: 5 * time.Second, Refill: bucket.Sliding}},
		{{Per: time.Second}},
		{{Name: "n", Tokens: 30, Per: 10 * time.Second}},
		{ten, {Tokens: 100, Per: time.Minute}},
		{{Tokens: 1 << 30, Per: time.Second, Burst: 1 << 33}},
		{{Tokens: 1 << 52, Per: time.Millisecond, Burst: 1<<53 - 1}},
	}
	for _, mode := range []bucket.Refill{bucket.Interval, bucket.Aligned} {
		all = append(all, []bucket.Limit{{Tokens: 4_000_000_000, Per: time.Millisecond, Burst: 1<<53 - 1, Refill: mode}})
	}
	day, _ := daily(t)
	sets := []*bucket.Limits{inMilliseconds(t), inMilliseconds(t)}
	for _, list := range all {
		sets = append(sets, limits(t, list...))
	}
	return append(sets, day)
}

// groups makes up to 40 groups, and sometimes hundreds.
func (p *pair) groups(versions []*bucket.Limits) [][]bucket.Charge {
	groups := make([][]bucket.Charge, 1+p.IntN(40))
	if p.IntN(20) == 0 {
		groups = make([][]bucket.Charge, 300+p.IntN(600))
	}
	if some := versions[:usualSets+p.IntN(2)*(len(versions)-usualSets)]; p.own == nil || p.IntN(10) == 0 {
		p.own = make([]*bucket.Limits, len(turnKeys))
		for i := range p.own {
			p.own[i] = some[p.IntN(len(some))]
		}
	}
	again := 1 + p.IntN(60)
	for i := range groups {
		if i == 0 || p.IntN(again) == 0 {
			groups[i] = p.group(versions)
			continue
		}
		groups[i] = withOwnLeases(groups[max(0, i-1-p.IntN(3))])
		switch g := groups[i]; p.IntN(40) {
		case 0, 1:
			p.Shuffle(len(g), func(a, b int) { g[a], g[b] = g[b], g[a] })
		case 2:
			g[0].Limits = versions[p.IntN(len(versions))]
		}
	}
	return groups
}

// group makes up to 3 charges, most of them usual.
func (p *pair) group(versions []*bucket.Limits) []bucket.Charge {
	charges := make([]bucket.Charge, 1+p.IntN(3))
	odd := []int64{0, -1, -5, 1<<63 - 1, -1 << 63, 1 << 53, 1<<53 - 1, 1 << 52, 1 << 46, 1<<47 - 1, 1 << 31}
	for i := range charges {
		k := p.IntN(len(turnKeys))
		c := bucket.Charge{Key: turnKeys[k], Limits: p.own[k], Cost: 1 + p.Int64N(4), Shadow: p.IntN(30) == 0}
		switch p.IntN(30) {
		case 0:
			c.Cost = odd[p.IntN(len(odd))]
		case 1, 2:
			c.Cost = (1<<53 - 1) / (1 + p.Int64N(300))
		case 3, 4, 5:
			c.Cost = c.Limits.At(0).Burst / (1 + p.Int64N(4))
		case 6:
			c.Limits = versions[p.IntN(len(versions))]
		case 7, 8:
			now := p.now.Load()
			c.Lease = &bucket.Lease{Want: p.Int64N(10), For: time.Second, Back: p.Int64N(4), Since: now - 5_000_000, Ends: now + p.Int64N(1_000_000)}
		}
		charges[i] = c
	}
	return charges
}
