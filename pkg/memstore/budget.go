package memstore

import "sync/atomic"

// A budget is the bytes that a Store may have.
type budget struct {
	max  int64
	used atomic.Int64
}

// reserve is the share of the budget that new keys leave to those that are
// kept already and need more room than before.
const reserve = 16

// forNew is how many bytes may be in use after a new key.
func (b *budget) forNew() int64 { return b.max - b.max/reserve }

// swap takes so many bytes, and gives others back once it has them, as long as
// no more than most are in use meanwhile.
func (b *budget) swap(take, give, most int64) bool {
	if b.used.Add(take) > most {
		b.used.Add(-take)
		return false
	}
	b.give(give)
	return true
}

func (b *budget) give(bytes int64) { b.used.Add(-bytes) }

// spare is how many chunks of a class may lie idle, lest one come and go with
// each record. Where memory is short, none.
func (b *budget) spare() int {
	if b.used.Load() > b.max/2 {
		return 0
	}
	return 1
}

// footprint is what the allocator takes for a slice of so many bytes, and for
// a list to have it.
func footprint(bytes int) int64 {
	const (
		slice = 24 * 5 / 4 // lists grow by a quarter
		page  = 8192
	)
	switch {
	case bytes == 0:
		return 0
	case bytes > chunkSize:
		bytes = (bytes + page - 1) / page * page
	case bytes > chunkSize/8*7:
		bytes = chunkSize
	}
	return int64(bytes + slice)
}
