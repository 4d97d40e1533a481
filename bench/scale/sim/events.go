package sim

import "math"

const never = math.MaxInt64

// An event is what happens at a moment, in ns since the start: do, with what it
// is about.
type event struct {
	at          int64
	seq         uint64 // of events at one moment the first that was planned comes first
	do          func(w *world, about, more int32)
	about, more int32
}

func (e *event) before(o *event) bool { return e.at < o.at || (e.at == o.at && e.seq < o.seq) }

// events are a heap in which each has four below it.
type events struct {
	now   int64
	count uint64
	heap  []event
}

// plan has do happen at a moment that is not before now.
func (es *events) plan(at int64, do func(w *world, about, more int32), about, more int32) {
	es.count++
	e := event{at, es.count, do, about, more}
	es.heap = append(es.heap, e)
	i := len(es.heap) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !e.before(&es.heap[up]) {
			break
		}
		es.heap[i] = es.heap[up]
		i = up
	}
	es.heap[i] = e
}

// next takes the first event, if it is not after until.
func (es *events) next(until int64) (event, bool) {
	if len(es.heap) == 0 || es.heap[0].at > until {
		return event{}, false
	}
	first := es.heap[0]
	last := len(es.heap) - 1
	e := es.heap[last]
	es.heap = es.heap[:last]
	if last > 0 {
		es.sink(e)
	}
	es.now = first.at
	return first, true
}

// sink puts e where the first was, or as far below as it belongs.
func (es *events) sink(e event) {
	i, n := 0, len(es.heap)
	for {
		first := 4*i + 1
		if first >= n {
			break
		}
		least := first
		for j := first + 1; j < min(first+4, n); j++ {
			if es.heap[j].before(&es.heap[least]) {
				least = j
			}
		}
		if !es.heap[least].before(&e) {
			break
		}
		es.heap[i] = es.heap[least]
		i = least
	}
	es.heap[i] = e
}
