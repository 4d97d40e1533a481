package storetest

import (
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// leases are those of a run of Differential.
type leases struct {
	held          []heldLease
	granted, over int
}

type heldLease struct {
	key string
	bucket.Lease
}

// leasing returns charges with a lease in the first, or without. Some are of a
// bucket that can be leased from.
func (d *driver) leasing(charges []bucket.Charge) []bucket.Charge {
	if !d.chance(4) {
		return charges
	}
	l := bucket.Lease{
		Want: d.Int64N(12) - 1,
		For:  []time.Duration{0, us, ms, 100 * ms, sec, 10 * sec, time.Hour, time.Hour + us}[d.IntN(8)],
	}
	if d.chance(100) {
		l.Want = 1<<63 - 1
	}
	if r := d.rules[len(usualVersions)]; !d.chance(4) {
		charges = []bucket.Charge{{Key: r.keys[d.IntN(len(r.keys))], Limits: r.versions[r.version], Cost: d.cost()}}
	}
	d.leases.handBack(d, &l, charges)
	charges[0].Lease = &l
	return charges
}

// handBack has l hand back one of those held, which the first of charges is
// for, if at all.
func (s *leases) handBack(d *driver, l *bucket.Lease, charges []bucket.Charge) {
	i := d.IntN(len(s.held) + 1)
	if i == len(s.held) || d.chance(4) {
		return
	}
	over := s.held[i]
	charges[0].Key = over.key
	l.Back, l.Ends = over.Granted, over.GrantEnds-d.Int64N(1000)*d.Int64N(2)
	l.Spent = d.Int64N(l.Back+3) - 1
	if d.chance(4) {
		l.Since = d.model.now.UnixMicro() + d.Int64N(3) - 1
	}
	if d.chance(3) {
		l.Sooner = d.Int64N(over.For.Microseconds()+2) - 1
	}
	if s.over++; d.chance(6) {
		return // and told again later
	}
	s.held = append(s.held[:i], s.held[i+1:]...)
}

// note keeps what was granted.
func (s *leases) note(charges []bucket.Charge) {
	l := charges[0].Lease
	if l == nil || l.Granted == 0 {
		return
	}
	s.granted++
	if s.held = append(s.held, heldLease{charges[0].Key, *l}); len(s.held) > 20 {
		s.held = s.held[1:]
	}
}

// DifferentialLeases is Differential of a few buckets that are leased from: asked
// for all sorts of leases and told of them in time, late, again and never, under
// a clock that is set to where they end, a little back and far, and limits that
// often change.
func DifferentialLeases(t *testing.T, h Harness, calls int, seed uint64) int {
	t.Helper()
	d := newDriver(t, h, seed, leaseVersions)
	return d.run(t, calls, seed, func() []bucket.Charge {
		d.moveToEnds()
		if d.chance(15) {
			d.change()
		}
		if d.chance(8) {
			return d.charges()
		}
		r := d.rules[d.IntN(len(d.rules))]
		ls := r.versions[r.version]
		l := bucket.Lease{Want: d.Int64N(12) - 1, For: []time.Duration{us, 17 * us, 3 * ms, 4 * ms, 20 * ms, 100 * ms, sec, 10 * sec, time.Hour}[d.IntN(9)]}
		if d.chance(4) {
			l.Want = d.Int64N(ls.At(0).Burst + 1)
		}
		charges := []bucket.Charge{{Key: r.keys[d.IntN(len(r.keys))], Limits: ls, Cost: d.cost(), Lease: &l}}
		if !d.chance(3) {
			d.leases.handBack(d, &l, charges)
		}
		return charges
	})
}

// moveToEnds sets the clock: mostly to about where a lease ends.
func (d *driver) moveToEnds() {
	now := d.model.now
	switch d.IntN(12) {
	case 0, 1, 2:
	case 3, 4, 5:
		if len(d.leases.held) > 0 {
			ends := d.leases.held[d.IntN(len(d.leases.held))].GrantEnds + d.Int64N(3) - 1
			now = time.UnixMicro(max(ends, now.UnixMicro()))
		}
	case 6:
		if d.back++; d.h.Forget != nil {
			d.h.Forget()
			d.model.forget()
		}
		d.set(now.Add(-time.Duration(d.Int64N(int64(30 * ms))).Truncate(us)))
		return
	case 7:
		if d.chance(8) {
			d.setBack()
			return
		}
	case 8:
		now = now.Add(time.Duration(d.Int64N(int64(3 * sec))).Truncate(us))
	case 9:
		now = now.Add(time.Duration(d.Int64N(int64(4 * ms))).Truncate(us))
	default:
		now = now.Add(time.Duration(d.Int64N(int64(20 * ms))).Truncate(us))
	}
	d.forth++
	d.set(now)
}
