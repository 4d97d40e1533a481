package sim

// A pool keeps things by number, and uses the places of those that are over
// again.
type pool[T any] struct {
	all  []T
	free []int32
}

func (p *pool[T]) add(t T) int32 {
	if last := len(p.free) - 1; last >= 0 {
		id := p.free[last]
		p.free = p.free[:last]
		p.all[id] = t
		return id
	}
	p.all = append(p.all, t)
	return int32(len(p.all) - 1)
}

func (p *pool[T]) at(id int32) *T { return &p.all[id] }

func (p *pool[T]) drop(id int32) { p.free = append(p.free, id) }
