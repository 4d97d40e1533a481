package bucket

import "encoding/binary"

// A packed bucket is at, in 8 bytes; the ms from then to full; then of each
// limit spent and aux and, with Sliding, the number of its entries and of each
// how long before at it was, and its tokens. Each number takes as many bytes
// as the largest that its limit can have: only a log makes the length vary.
//
// With leases, a bit of at says so, the time to full takes 8 bytes, and at the
// end stand of each Greedy limit the number of leases and of each how long after
// at it ends, and its tokens.

// A width is the bytes that the numbers of one limit take when packed.
type width struct{ spent, aux, ago uint8 }

const (
	withLeases = 1 << 62 // is as the sign of at is, but where there are leases
	untilWidth = 4       // of LongestLease
)

// Pack appends b, which must not be full, to dst. Unpack reads it, under
// Limits that are the Same.
func (b Bucket) Pack(dst []byte) []byte {
	leases := b.leases()
	dst = b.packHead(dst, leases)
	for i := range b.ls.list {
		l, p := &b.ls.list[i], b.part(i)
		dst = appendInt(dst, p.Spent, l.width.spent)
		dst = appendInt(dst, p.Aux, l.width.aux)
		if l.Refill != Sliding {
			continue
		}
		dst = append(dst, byte(len(p.Log)))
		for _, e := range p.Log {
			dst = appendInt(dst, b.at-e.At, l.width.ago)
			dst = appendInt(dst, e.Tokens, l.width.spent)
		}
	}
	if leases {
		dst = b.packLeases(dst)
	}
	return dst
}

func (b *Bucket) packHead(dst []byte, leases bool) []byte {
	at, width := b.at, b.ls.fullWidth
	if leases {
		at, width = at^withLeases, 8
	}
	return appendInt(appendInt(dst, at, 8), (b.fullAt-b.at)/1000, width)
}

func (b *Bucket) packLeases(dst []byte) []byte {
	for i := range b.ls.list {
		if b.ls.list[i].Refill != Greedy {
			continue
		}
		dst = append(dst, byte(len(b.logs[i])))
		for _, e := range b.logs[i] {
			dst = appendInt(dst, e.At-b.at, untilWidth)
			dst = appendInt(dst, e.Tokens, b.ls.list[i].width.spent)
		}
	}
	return dst
}

// leases says that b has some.
func (b *Bucket) leases() bool {
	for i := range b.logs {
		if b.held(i) > 0 {
			return true
		}
	}
	return false
}

// PackedLen is the length of what Pack appends.
func (b Bucket) PackedLen() int {
	n := 8 + int(b.ls.fullWidth)
	for i := range b.ls.list {
		l := &b.ls.list[i]
		n += int(l.width.spent) + int(l.width.aux)
		if l.Refill == Sliding {
			n += 1 + len(b.part(i).Log)*int(l.width.ago+l.width.spent)
		}
	}
	if b.leases() {
		n += b.leasesLen()
	}
	return n
}

// leasesLen is by how much leases make b longer.
func (b *Bucket) leasesLen() int {
	n := 8 - int(b.ls.fullWidth)
	for i := range b.ls.list {
		if b.ls.list[i].Refill == Greedy {
			n += 1 + len(b.logs[i])*int(untilWidth+b.ls.list[i].width.spent)
		}
	}
	return n
}

// Unpack returns the Bucket that src begins with, packed under ls.
func Unpack(ls *Limits, src []byte) Bucket {
	r := reader(src)
	at, fullAt, leases := r.head(ls)
	b := blank(ls, at)
	b.fullAt = fullAt
	for i := range ls.list {
		w := ls.list[i].width
		p := Part{Spent: r.next(w.spent), Aux: r.next(w.aux)}
		if ls.list[i].Refill == Sliding {
			p.Log = r.log(b.at, int(r.next(1)), w)
		}
		b.setPart(i, p)
	}
	if leases {
		r.leases(&b)
	}
	return b
}

// PackedFullAt returns when the packed bucket is full, in µs since the epoch.
func PackedFullAt(ls *Limits, src []byte) int64 {
	r := reader(src)
	_, fullAt, _ := r.head(ls)
	return fullAt
}

// A reader is what is left to read.
type reader []byte

func (r *reader) next(width uint8) int64 {
	var eight [8]byte
	copy(eight[:width], *r)
	*r = (*r)[width:]
	return int64(binary.LittleEndian.Uint64(eight[:]))
}

// head reads when the bucket was charged and when it is full, and whether it has
// leases.
func (r *reader) head(ls *Limits) (at, fullAt int64, leases bool) {
	width := ls.fullWidth
	at = r.next(8)
	if leases = at&withLeases != 0 != (at < 0); leases {
		at, width = at^withLeases, 8
	}
	return at, at + r.next(width)*1000, leases
}

func (r *reader) leases(b *Bucket) {
	for i := range b.ls.list {
		l := &b.ls.list[i]
		if l.Refill != Greedy {
			continue
		}
		p := b.part(i)
		for range r.next(1) {
			p.Log = append(p.Log, Entry{At: b.at + r.next(untilWidth), Tokens: r.next(l.width.spent)})
		}
		b.setPart(i, p)
	}
}

func (r *reader) log(at int64, n int, w width) []Entry {
	if n == 0 {
		return nil
	}
	log := make([]Entry, n)
	for i := range log {
		log[i] = Entry{At: at - r.next(w.ago), Tokens: r.next(w.spent)}
	}
	return log
}

func appendInt(dst []byte, n int64, width uint8) []byte {
	var eight [8]byte
	binary.LittleEndian.PutUint64(eight[:], uint64(n))
	return append(dst, eight[:width]...)
}

// bytesFor returns how many bytes hold n, which is 0 or more.
func bytesFor(n int64) uint8 {
	var w uint8
	for ; n > 0; n >>= 8 {
		w++
	}
	return w
}

// pack sets how buckets under ls are packed.
func (ls *Limits) pack() {
	for i := range ls.list {
		l := &ls.list[i]
		l.width = l.packed()
		ls.fullWidth = max(ls.fullWidth, bytesFor(l.longest()/1000+1))
	}
}

func (l *limit) packed() width {
	w := width{spent: bytesFor(l.most)}
	switch l.Refill {
	case Greedy:
		w.aux = bytesFor(l.unit * l.tick)
	case Interval:
		w.aux = bytesFor(l.perUS)
	case Sliding:
		w.aux, w.ago = bytesFor(l.slot), bytesFor(l.perUS)
	}
	return w
}

// longest returns the most µs that l takes to be full again.
func (l *limit) longest() int64 {
	switch {
	case l.Tokens == 0:
		return 0
	case l.Refill == Greedy:
		return ceil(l.most*l.unit, l.step) * l.tick
	case l.Refill == Sliding:
		return l.perUS
	case l.Calendar != 0:
		return 2 * ceil(l.most, l.Tokens) * l.perUS // days may be left out
	default:
		return ceil(l.most, l.Tokens) * l.perUS
	}
}
