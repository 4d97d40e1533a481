package memstore

// An index finds records by the hashes of their keys: a table that is probed
// one slot after the other. A slot is a hash in its upper half and a ref, plus
// one, in its lower; 0 is empty.
type index struct {
	slots []uint64
	count int
}

// least is the room that an index and a queue begin with.
const least = 16

// indexBytes returns what a table of so many slots takes.
func indexBytes(slots int) int64 { return footprint(slots * 8) }

// home returns the slot where the search for a hash begins. Hashes keep their
// order, so that a table of any size can be filled from another in one pass.
func (x *index) home(hash uint32) int { return int(uint64(hash) * uint64(len(x.slots)) >> 32) }

func (x *index) after(i int) int {
	if i++; i == len(x.slots) {
		return 0
	}
	return i
}

func hashOf(slot uint64) uint32 { return uint32(slot >> 32) }
func refIn(slot uint64) ref     { return ref(uint32(slot) - 1) }

// find returns the record of that hash that is says yes to.
func (x *index) find(hash uint32, is func(ref) bool) (ref, bool) {
	if len(x.slots) == 0 {
		return 0, false
	}
	for i := x.home(hash); x.slots[i] != 0; i = x.after(i) {
		if s := x.slots[i]; hashOf(s) == hash && is(refIn(s)) {
			return refIn(s), true
		}
	}
	return 0, false
}

// first returns the first record of that hash, nearly always the only one.
func (x *index) first(hash uint32) (ref, bool) {
	return x.find(hash, func(ref) bool { return true })
}

// crowded says that the table must grow before another is put in, and to how
// many slots.
func (x *index) crowded() (slots int, yes bool) {
	n := len(x.slots)
	if (x.count+1)*5 <= n*4 {
		return n, false
	}
	return max(n+n/4, least), true
}

// sparse says that the table is far too large, and how many slots would do.
func (x *index) sparse() (slots int, yes bool) {
	slots = max(x.count*2, least)
	return slots, slots*4 <= len(x.slots)
}

// resize makes the table one of so many slots, more than are in use.
func (x *index) resize(slots int) {
	old := x.slots
	x.slots = make([]uint64, slots)
	for _, s := range old {
		if s != 0 {
			x.place(s)
		}
	}
}

func (x *index) place(slot uint64) {
	i := x.home(hashOf(slot))
	for x.slots[i] != 0 {
		i = x.after(i)
	}
	x.slots[i] = slot
}

// put adds a record to a table that is not crowded.
func (x *index) put(hash uint32, f ref) {
	x.place(uint64(hash)<<32 | uint64(f+1))
	x.count++
}

// slotOf returns the slot of a record that is there.
func (x *index) slotOf(hash uint32, f ref) int {
	want := uint64(hash)<<32 | uint64(f+1)
	i := x.home(hash)
	for x.slots[i] != want {
		i = x.after(i)
	}
	return i
}

// move says where a record is since.
func (x *index) move(hash uint32, from, to ref) {
	x.slots[x.slotOf(hash, from)] = uint64(hash)<<32 | uint64(to+1)
}

// remove closes the gap that a record leaves.
func (x *index) remove(hash uint32, f ref) {
	gap := x.slotOf(hash, f)
	for i := x.after(gap); x.slots[i] != 0; i = x.after(i) {
		home := x.home(hashOf(x.slots[i]))
		if between := (gap < home && home <= i) || (i < gap && (gap < home || home <= i)); !between {
			x.slots[gap] = x.slots[i]
			gap = i
		}
	}
	x.slots[gap] = 0
	x.count--
}
