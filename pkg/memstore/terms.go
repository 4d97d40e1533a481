package memstore

import "github.com/sluice-mesh/sluice/pkg/bucket"

// Terms are the limits that records were charged under, each under a number
// that a record can keep. Limits that are the Same have one number; it is
// given up with the last record.
type terms struct {
	list  []term
	ids   map[string]uint32 // by Print
	spare []uint32
}

type term struct {
	limits  *bucket.Limits
	records int
}

func (t *terms) limits(id uint32) *bucket.Limits { return t.list[id].limits }

// hold returns the number of ls, for one more record.
func (t *terms) hold(ls *bucket.Limits) uint32 {
	id, known := t.ids[ls.Print()]
	if !known {
		id = t.add(ls)
	}
	t.list[id].records++
	return id
}

func (t *terms) add(ls *bucket.Limits) uint32 {
	id := uint32(len(t.list))
	if n := len(t.spare); n > 0 {
		id, t.spare = t.spare[n-1], t.spare[:n-1]
	} else {
		t.list = append(t.list, term{})
	}
	if t.ids == nil {
		t.ids = map[string]uint32{}
	}
	t.list[id].limits = ls
	t.ids[ls.Print()] = id
	return id
}

// release is hold taken back.
func (t *terms) release(id uint32) {
	if t.list[id].records--; t.list[id].records > 0 {
		return
	}
	delete(t.ids, t.list[id].limits.Print())
	t.list[id].limits = nil
	t.spare = append(t.spare, id)
}
