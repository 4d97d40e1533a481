package bucket

// refill returns p, which stands at the moment at, as it stands at now.
func (l *limit) refill(p Part, at, now int64) Part {
	elapsed := now - at
	if elapsed >= l.wait(p, at, p.Spent) {
		return Part{}
	}
	switch l.Refill {
	case Greedy:
		// Less than Spent tokens have come, so that none of this reaches 2^53.
		since := elapsed + p.Aux%l.tick
		parts := p.Aux/l.tick + since/l.tick*l.step
		return Part{Spent: p.Spent - parts/l.unit, Aux: parts%l.unit*l.tick + since%l.tick}
	case Interval:
		since := elapsed + p.Aux
		return Part{Spent: p.Spent - since/l.perUS*l.Tokens, Aux: since % l.perUS}
	case Aligned:
		return Part{Spent: p.Spent - l.begun(at, now)*l.Tokens}
	default:
		p.Aux = min(p.Aux+elapsed, l.slot)
		return p.since(now - l.perUS)
	}
}

// wait returns the µs from the moment at, where p stands, until n of its spent
// tokens are back, n being at most p.Spent.
func (l *limit) wait(p Part, at, n int64) int64 {
	if n <= 0 || l.Tokens == 0 {
		return 0
	}
	switch l.Refill {
	case Greedy:
		return ceil(n*l.unit-p.Aux/l.tick, l.step)*l.tick - p.Aux%l.tick
	case Interval:
		return ceil(n, l.Tokens)*l.perUS - p.Aux
	case Aligned:
		return l.begin(at, ceil(n, l.Tokens)) - at
	default:
		return p.leaves(n) + l.perUS - at
	}
}

// begun returns how many aligned periods have begun after from, up to to; with
// a calendar no more than refill the largest burst.
func (l *limit) begun(from, to int64) int64 {
	if l.Calendar == 0 {
		return quotient(to, l.perUS) - quotient(from, l.perUS)
	}
	var n int64
	for n <= maxPeriods {
		if from = l.next(from); from > to {
			break
		}
		n++
	}
	return n
}

// begin returns the moment when the nth aligned period after at begins.
func (l *limit) begin(at, n int64) int64 {
	if l.Calendar == 0 {
		return (quotient(at, l.perUS) + n) * l.perUS
	}
	for range n {
		at = l.next(at)
	}
	return at
}

// spend returns p, at the moment at, with cost more tokens spent: as many as
// there are, or as can be given back.
func (l *limit) spend(p Part, at, cost int64) Part {
	p = l.capped(p)
	spent := max(min(p.Spent+clamp(cost), l.most), 0)
	switch {
	case spent == 0:
		return Part{}
	case l.Refill == Sliding && spent > p.Spent:
		return p.add(at, spent-p.Spent, l.slot)
	case l.Refill == Sliding:
		return p.giveBack(p.Spent-spent, l.slot)
	}
	p.Spent = spent
	return p
}

// capped returns p, about to be charged, without what came beyond full in the
// running tick. Those parts are not counted before the tick ends, and then must
// not make up for what is charged now: tokens would come early.
func (l *limit) capped(p Part) Part {
	if l.tick == 1 || l.Refill != Greedy || p.Spent == 0 {
		return p
	}
	phase := p.Aux % l.tick
	// phase × step ÷ tick, without leaving the exact range.
	came := phase*(l.step/l.tick) + phase*(l.step%l.tick)/l.tick
	if p.Spent*l.unit-p.Aux/l.tick <= came {
		return Part{}
	}
	return p
}

// adopt returns p, written under old, as what l lacks at the same moment.
func (l *limit) adopt(old *limit, p Part, at int64) Part {
	spent := min(p.Spent, l.most)
	switch {
	case spent == 0:
		return Part{}
	case l.Refill != old.Refill && l.Refill == Sliding:
		return Part{Spent: spent, Log: []Entry{{at, spent}}}
	case l.Refill == Sliding:
		return l.adoptLog(old, p, at)
	case l.keeps(old):
		return Part{Spent: spent, Aux: p.Aux}
	default:
		return Part{Spent: spent}
	}
}

// keeps says that what was under way under old counts under l as well: l
// brings its tokens at the same moments.
func (l *limit) keeps(old *limit) bool {
	if l.Refill != old.Refill || l.perMS != old.perMS {
		return false
	}
	return l.Refill != Greedy || (l.Tokens == old.Tokens && l.tick == old.tick)
}

// match returns for each of ls the place of the limit in old that it goes on
// from, by name, else period, else place; or -1.
func (ls *Limits) match(old *Limits) [MaxLimits]int8 {
	from := inPlace
	if ls.Same(old) {
		return from
	}
	for i := range from {
		from[i] = -1
	}
	var taken [MaxLimits]bool
	for _, fits := range [...]func(i, j int) bool{
		func(i, j int) bool { return ls.list[i].name != 0 && ls.list[i].name == old.list[j].name },
		func(i, j int) bool { return ls.list[i].perMS == old.list[j].perMS },
		func(i, j int) bool { return i == j },
	} {
		for i := range ls.list {
			for j := range old.list {
				if from[i] < 0 && !taken[j] && fits(i, j) {
					from[i], taken[j] = int8(j), true
				}
			}
		}
	}
	return from
}

var inPlace = [MaxLimits]int8{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

// ceil returns a/b rounded up, for a > 0 and b > 0.
func ceil(a, b int64) int64 { return (a-1)/b + 1 }

// quotient returns a/b rounded down, for b > 0.
func quotient(a, b int64) int64 {
	if a < 0 {
		return -ceil(-a, b)
	}
	return a / b
}
