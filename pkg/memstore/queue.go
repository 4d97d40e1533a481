package memstore

// A queue is a heap of records by when they are due, the first on top. It
// tells placed where each record has come to stand.
type queue struct {
	dues []int64 // µs
	refs []ref
}

// queueBytes returns what a queue with so much room takes.
func queueBytes(room int) int64 { return footprint(room*8) + footprint(room*4) }

// crowded says that the queue must grow before another is pushed, and to how
// many.
func (q *queue) crowded() (room int, yes bool) {
	n := cap(q.dues)
	return max(n+n/4, least), len(q.dues) == n
}

// sparse says that the queue is far too large, and how much would do.
func (q *queue) sparse() (room int, yes bool) {
	room = max(len(q.dues)*2, least)
	return room, room*4 <= cap(q.dues)
}

func (q *queue) resize(room int) {
	q.dues = append(make([]int64, 0, room), q.dues...)
	q.refs = append(make([]ref, 0, room), q.refs...)
}

// A placing is told that the record f stands at place i of the queue.
type placing func(f ref, i int)

func (q *queue) push(f ref, due int64, placed placing) {
	q.dues, q.refs = append(q.dues, due), append(q.refs, f)
	placed(f, len(q.refs)-1)
	q.up(len(q.refs)-1, placed)
}

// set gives the record at place i another due.
func (q *queue) set(i int, due int64, placed placing) {
	q.dues[i] = due
	if !q.down(i, placed) {
		q.up(i, placed)
	}
}

// remove takes out the record at place i.
func (q *queue) remove(i int, placed placing) {
	last := len(q.refs) - 1
	if i != last {
		q.swap(i, last, placed)
	}
	q.dues, q.refs = q.dues[:last], q.refs[:last]
	if i != last && !q.down(i, placed) {
		q.up(i, placed)
	}
}

func (q *queue) swap(i, j int, placed placing) {
	q.dues[i], q.dues[j] = q.dues[j], q.dues[i]
	q.refs[i], q.refs[j] = q.refs[j], q.refs[i]
	placed(q.refs[i], i)
	placed(q.refs[j], j)
}

func (q *queue) up(i int, placed placing) {
	for i > 0 {
		parent := (i - 1) / 2
		if q.dues[parent] <= q.dues[i] {
			return
		}
		q.swap(i, parent, placed)
		i = parent
	}
}

// down says whether the record at place i moved.
func (q *queue) down(i int, placed placing) bool {
	from := i
	for {
		child := 2*i + 1
		if child >= len(q.dues) {
			break
		}
		if right := child + 1; right < len(q.dues) && q.dues[right] < q.dues[child] {
			child = right
		}
		if q.dues[i] <= q.dues[child] {
			break
		}
		q.swap(i, child, placed)
		i = child
	}
	return i > from
}
