package bucket

// refill returns p after elapsed µs.
func (l *limit) refill(p Part, elapsed int64) Part {
	if elapsed >= l.wait(p, p.Spent) {
		return Part{}
	}
	if l.Refill == Interval {
		since := elapsed + p.Aux
		return Part{Spent: p.Spent - since/l.perUS*l.Tokens, Aux: since % l.perUS}
	}
	// Less than Spent tokens have come, so that none of this reaches 2^53.
	since := elapsed + p.Aux%l.tick
	parts := p.Aux/l.tick + since/l.tick*l.step
	return Part{Spent: p.Spent - parts/l.unit, Aux: parts%l.unit*l.tick + since%l.tick}
}

// wait returns the µs until n of the spent tokens of p are back, n being at
// most p.Spent.
func (l *limit) wait(p Part, n int64) int64 {
	if n <= 0 || l.Tokens == 0 {
		return 0
	}
	if l.Refill == Interval {
		return ceil(n, l.Tokens)*l.perUS - p.Aux
	}
	return ceil(n*l.unit-p.Aux/l.tick, l.step)*l.tick - p.Aux%l.tick
}

// capped returns p, about to be charged, without what came beyond full in the
// running tick. Those parts are not counted before the tick ends, and then must
// not make up for what is charged now: tokens would come early.
func (l *limit) capped(p Part) Part {
	if l.Refill == Interval || l.tick == 1 || p.Spent == 0 {
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
func (l *limit) adopt(old *limit, p Part) Part {
	p.Spent = min(p.Spent, l.burst)
	if p.Spent == 0 || !l.keeps(old) {
		p.Aux = 0
	}
	return p
}

// keeps says that what was under way under old counts under l as well: l
// brings its tokens at the same moments.
func (l *limit) keeps(old *limit) bool {
	if l.Refill != old.Refill || l.perMS != old.perMS {
		return false
	}
	return l.Refill == Interval || (l.Tokens == old.Tokens && l.tick == old.tick)
}

// match returns for each of ls the place of the limit in old that it goes on
// from, by name, else period, else place; or -1.
func (ls *Limits) match(old *Limits) [MaxLimits]int8 {
	from := inPlace
	if ls == old {
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
