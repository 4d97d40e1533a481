package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// Differential makes so many random calls of a store and of the Go arithmetic,
// and wants whole results to be the same: groups and single charges, shadow,
// debt, costs of all sizes and signs, leases, limits and modes that change under live
// buckets, and a clock that is set forth and back. It stops at the first
// difference. The same seed makes the same calls. It returns how many charges
// it made.
func Differential(t *testing.T, h Harness, calls int, seed uint64) int {
	t.Helper()
	d := newDriver(t, h, seed, ruleVersions(berlin(t)))
	return d.run(t, calls, seed, func() []bucket.Charge {
		d.move()
		if d.chance(40) {
			d.change()
		}
		return d.leasing(d.charges())
	})
}

// run makes calls of what next says.
func (d *driver) run(t *testing.T, calls int, seed uint64, next func() []bucket.Charge) int {
	t.Helper()
	for i := range calls {
		charges := next()
		same := slices.Clone(charges)
		if l := charges[0].Lease; l != nil {
			asked := *l
			same[0].Lease = &asked
		}
		want, got := d.model.take(same), take(t, d.h.Store, charges...)
		if diff := cmp.Diff(want, got) + cmp.Diff(same[0].Lease, charges[0].Lease); diff != "" {
			t.Fatalf("seed %d, call %d at %v: Take(%s) (-model +store):\n%s", seed, i, d.model.now.Sub(epoch), describe(charges), diff)
		}
		d.count(got)
		d.leases.note(charges)
	}
	t.Logf("%d calls: %d results with room, %d without; clock forth %d, back %d; %d changes of limits; costs: %d negative, %d huge, %d on a key again; %d leases, %d handed back",
		calls, d.room, d.lack, d.forth, d.back, d.changes, d.negative, d.huge, d.repeated, d.leases.granted, d.leases.over)
	return d.room + d.lack
}

// A model is a store of plain buckets that are never dropped.
type model struct {
	now     time.Time
	buckets map[string]*bucket.Bucket
}

func (m *model) take(charges []bucket.Charge) []bucket.Result {
	results := make([]bucket.Result, len(charges))
	bucket.Group(charges, results, m.now, func(key string) *bucket.Bucket {
		if m.buckets[key] == nil {
			m.buckets[key] = new(bucket.Bucket)
		}
		return m.buckets[key]
	})
	return results
}

// forget drops the full buckets.
func (m *model) forget() {
	for key, b := range m.buckets {
		if _, full := b.At(); !m.now.Before(full) {
			delete(m.buckets, key)
		}
	}
}

// A driver makes up calls.
type driver struct {
	*rand.Rand
	h     Harness
	zone  *time.Location
	model model
	rules []*ruled

	leases leases
	// How often what happened, so that a run can be seen to have tried it.
	room, lack, forth, back, changes, negative, huge, repeated int
}

// A ruled is a few keys under limits that change together.
type ruled struct {
	keys     []string
	versions []*bucket.Limits
	version  int
}

func newDriver(t *testing.T, h Harness, seed uint64, rules [][]version) *driver {
	t.Helper()
	d := &driver{
		Rand: rand.New(rand.NewPCG(seed, 0)), h: h, zone: berlin(t),
		model: model{now: epoch, buckets: map[string]*bucket.Bucket{}},
	}
	for i, versions := range rules {
		r := &ruled{}
		for _, v := range versions {
			r.versions = append(r.versions, v.compile(t))
		}
		for k := range 3 {
			r.keys = append(r.keys, fmt.Sprintf("{t%d}%d \x00é", i, k))
		}
		d.rules = append(d.rules, r)
	}
	return d
}

func (d *driver) count(results []bucket.Result) {
	for _, r := range results {
		if r.Allowed {
			d.room++
		} else {
			d.lack++
		}
	}
}

// chance is true once in n times.
func (d *driver) chance(n int) bool { return d.IntN(n) == 0 }

// move sets the clock: mostly on, by what is short and long to the limits
// here.
func (d *driver) move() {
	var by time.Duration
	switch d.IntN(12) {
	case 0, 1:
	case 2:
		by = us
	case 3:
		by = time.Duration(d.Int64N(int64(3 * ms))).Truncate(us)
	case 4, 5:
		by = time.Duration(1+d.IntN(10)) * sec
	case 6:
		if d.chance(10) {
			by = time.Duration(d.Int64N(int64(time.Hour))).Truncate(us)
		}
	case 7:
		if d.chance(8) {
			d.setBack()
			return
		}
	case 8:
		if d.chance(40) {
			d.forth++
			d.set(d.edge())
			return
		}
	default:
		by = time.Duration(d.Int64N(int64(700 * ms))).Truncate(us)
	}
	d.forth++
	d.set(d.model.now.Add(by))
}

// edge is close to the next midnight in Berlin, one side or the other.
func (d *driver) edge() time.Time {
	year, month, day := d.model.now.In(d.zone).Date()
	midnight := time.Date(year, month, day+1, 0, 0, 0, 0, d.zone)
	return midnight.Add(time.Duration(d.Int64N(5)-2) * us)
}

func (d *driver) setBack() {
	d.back++
	if d.h.Forget != nil {
		d.h.Forget()
		d.model.forget()
	}
	d.set(d.model.now.Add(-time.Duration(d.Int64N(int64(40 * sec))).Truncate(us)))
}

func (d *driver) set(now time.Time) {
	d.model.now = now
	d.h.SetNow(now)
}

// change gives a rule other limits.
func (d *driver) change() {
	r := d.rules[d.IntN(len(d.rules))]
	r.version = d.IntN(len(r.versions))
	d.changes++
}

func (d *driver) charges() []bucket.Charge {
	charges := make([]bucket.Charge, 1+d.IntN(5)*d.IntN(2))
	for i := range charges {
		if i > 0 && d.chance(6) {
			charges[i] = charges[d.IntN(i)]
			charges[i].Cost = d.cost()
			if d.chance(4) {
				charges[i].Limits = d.anyLimits()
			}
			d.repeated++
			continue
		}
		r := d.rules[d.IntN(len(d.rules))]
		charges[i] = bucket.Charge{
			Key: r.keys[d.IntN(len(r.keys))], Limits: r.versions[r.version], Cost: d.cost(), Shadow: d.chance(5),
		}
	}
	return charges
}

func (d *driver) anyLimits() *bucket.Limits {
	r := d.rules[d.IntN(len(d.rules))]
	return r.versions[d.IntN(len(r.versions))]
}

func (d *driver) cost() int64 {
	switch d.IntN(16) {
	case 0:
		return 0
	case 1:
		d.negative++
		return -1 - d.Int64N(6)
	case 2:
		d.huge++
		return []int64{1<<63 - 1, 1<<53 - 1, 1 << 53, -1 << 63, -1<<53 - 1, 1 << 40}[d.IntN(6)]
	case 3, 4, 5:
		return 1 + d.Int64N(20)
	default:
		return 1
	}
}
