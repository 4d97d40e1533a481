package memstore

// A ref is where a record lies in its shard: class and place.
type ref uint32

const placeBits = 24

func (r ref) class() int { return int(r >> placeBits) }
func (r ref) place() int { return int(r & (1<<placeBits - 1)) }

func refOf(class, place int) ref { return ref(class<<placeBits | place) }

// A class is the records of one size, in chunks that hold equally many. They
// lie without a gap: where one is freed, the last one takes its place. So no
// memory is lost to records that have gone, and an empty chunk is given back.
type class struct {
	chunks [][]byte
	count  int
}

const (
	step      = 8       // bytes by which the smallest classes differ
	linear    = 16      // of them, before eight share each doubling
	largest   = 1 << 16 // bytes of the largest record
	classes   = linear + 8*9
	chunkSize = 4096 // bytes of a chunk with records that are not large
)

// classOf returns the class of records of so many bytes, at most largest.
func classOf(bytes int) int {
	if bytes <= step*linear {
		return (bytes - 1) / step
	}
	c := linear
	for size := step * linear; ; size *= 2 {
		if bytes <= 2*size {
			return c + (bytes-size-1)/(size/8)
		}
		c += 8
	}
}

// sizeOf returns the bytes of a record in class c.
func sizeOf(c int) int {
	if c < linear {
		return (c + 1) * step
	}
	double, eighth := (c-linear)/8, (c-linear)%8
	size := step * linear << double
	return size + (eighth+1)*size/8
}

// perChunk returns how many records of class c a chunk has.
func perChunk(c int) int {
	size := sizeOf(c)
	if size <= chunkSize/8 {
		return chunkSize / size
	}
	return max(4*chunkSize/size, 1)
}

// records are what a shard keeps.
type records [classes]class

// at returns the bytes of a record, good until the next one is freed.
func (r *records) at(f ref) []byte {
	size, per := sizeOf(f.class()), perChunk(f.class())
	chunk := r[f.class()].chunks[f.place()/per]
	from := f.place() % per * size
	return chunk[from : from+size : from+size]
}

// full says that another record of class c needs another chunk.
func (r *records) full(c int) bool { return r[c].count == len(r[c].chunks)*perChunk(c) }

// chunkBytes returns what a chunk of class c takes.
func chunkBytes(c int) int64 { return footprint(perChunk(c) * sizeOf(c)) }

// grow adds a chunk.
func (r *records) grow(c int) {
	r[c].chunks = append(r[c].chunks, make([]byte, perChunk(c)*sizeOf(c)))
}

// add returns a new record of class c, which must not be full.
func (r *records) add(c int) ref {
	r[c].count++
	return refOf(c, r[c].count-1)
}

// free frees a record. The one that was at last is at f since, unless they are
// the same.
func (r *records) free(f ref) (last ref) {
	c := &r[f.class()]
	last = refOf(f.class(), c.count-1)
	if last != f {
		copy(r.at(f), r.at(last))
	}
	c.count--
	return last
}

// shrink drops a chunk that is not in use beyond so many, and says whether
// there was one.
func (r *records) shrink(c, spare int) bool {
	per := perChunk(c)
	n := len(r[c].chunks)
	if n == 0 || (n-spare-1)*per < r[c].count {
		return false
	}
	r[c].chunks[n-1] = nil
	r[c].chunks = r[c].chunks[:n-1]
	return true
}
