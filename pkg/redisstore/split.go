package redisstore

import (
	"context"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// takeSlots is takeAll where the keys of a call may lie in several slots.
func (s *Store) takeSlots(ctx context.Context, groups []group) error {
	var calls []*call
	var splits []*split
	for slot, together := range s.bySlot(groups, &splits) {
		calls = append(calls, s.callIn(slot, together...))
	}
	for _, p := range splits {
		calls = append(calls, p.taking...)
	}
	err := s.perform(ctx, calls)
	if len(splits) == 0 {
		return err
	}
	if err != nil {
		s.follow(ctx, s.undoAll(splits), nil)
		return err
	}
	s.conclude(ctx, splits)
	return nil
}

// bySlot returns the groups that have all their keys in one slot, by slot, and
// adds the others to splits.
func (s *Store) bySlot(groups []group, splits *[]*split) map[uint16][]group {
	together := map[uint16][]group{}
	for _, g := range groups {
		if slot, one := s.slot(g.charges); one {
			together[slot] = append(together[slot], g)
		} else {
			*splits = append(*splits, s.split(g))
		}
	}
	return together
}

// slot returns the slot of the first charge, and whether it is that of all.
func (s *Store) slot(charges []bucket.Charge) (slot uint16, one bool) {
	for i := range charges {
		at := slotOf(s.prefix + charges[i].Key)
		if i > 0 && at != slot {
			return 0, false
		}
		slot = at
	}
	return slot, true
}

func (s *Store) callIn(slot uint16, groups ...group) *call {
	c := newCall(s.prefix, groups, s.about())
	c.slot = slot
	return c
}

// A split is a group whose keys lie in several slots.
type split struct {
	group
	taking []*call // of the charges that decide, one a slot
	after  []*call // of the others, when that is known, and of what was given back
}

// split has what decides about g charged first. Refunds do not decide, and are
// not undone.
func (s *Store) split(g group) *split {
	g.sums = bucket.Sums(nil, g.charges)
	p := &split{group: g}
	p.taking = s.calls(g, told, g.decides)
	return p
}

func (g *group) decides(i int) bool { return !g.charges[i].Shadow && g.sums[i].Cost >= 0 }

// owes says that charge i is made whatever becomes of its group.
func (g *group) owes(i int) bool {
	return g.charges[g.sums[i].First].Limits.Owes(g.sums[i].Cost)
}

// calls returns calls of the charges of g at the places that pick chooses, one
// a slot.
func (s *Store) calls(g group, flags byte, pick func(i int) bool) []*call {
	var order []uint16
	places := map[uint16][]int{}
	for i := range g.charges {
		if !pick(i) {
			continue
		}
		slot := slotOf(s.prefix + g.charges[i].Key)
		if places[slot] == nil {
			order = append(order, slot)
		}
		places[slot] = append(places[slot], i)
	}
	var calls []*call
	for _, slot := range order {
		part := group{charges: make([]bucket.Charge, len(places[slot])), results: make([]bucket.Result, len(places[slot])), flags: flags}
		for j, i := range places[slot] {
			part.charges[j] = g.charges[i]
			part.charges[j].Lease = nil // it is not alone
		}
		c := s.callIn(slot, part)
		c.origin = places[slot]
		calls = append(calls, c)
	}
	return calls
}
