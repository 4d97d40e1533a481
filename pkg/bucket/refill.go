package bucket

// The lacks here are of limits that do not slide.

// refill returns k, which stands at the moment at, as it stands at now.
func (l *limit) refill(k lack, at, now int64) lack {
	elapsed := now - at
	if elapsed >= l.wait(k, at, k.spent) {
		return lack{}
	}
	switch l.Refill {
	case Greedy:
		// Less than all spent tokens have come, so that none of this reaches
		// 2^53.
		since := elapsed + k.aux%l.tick
		parts := k.aux/l.tick + since/l.tick*l.step
		return lack{k.spent - parts/l.unit, parts%l.unit*l.tick + since%l.tick}
	case Interval:
		since := elapsed + k.aux
		return lack{k.spent - since/l.perUS*l.Tokens, since % l.perUS}
	default:
		return lack{spent: k.spent - l.begun(at, now)*l.Tokens}
	}
}

// wait returns the µs from the moment at, where k stands, until n of its spent
// tokens are back, n being at most k.spent.
func (l *limit) wait(k lack, at, n int64) int64 {
	if n <= 0 || l.Tokens == 0 {
		return 0
	}
	switch l.Refill {
	case Greedy:
		return ceil(n*l.unit-k.aux/l.tick, l.step)*l.tick - k.aux%l.tick
	case Interval:
		return ceil(n, l.Tokens)*l.perUS - k.aux
	default:
		return l.begin(at, ceil(n, l.Tokens)) - at
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

// spend returns k with cost more tokens spent: as many as may be beside those
// that are held, or as can be given back.
func (l *limit) spend(k lack, cost, held int64) lack {
	k = l.capped(k)
	if k.spent = max(min(k.spent+clamp(cost), l.most-held), 0); k.spent == 0 {
		return lack{}
	}
	return k
}

// capped returns k, about to be charged, without what came beyond full in the
// running tick. Those parts are not counted before the tick ends, and then must
// not make up for what is charged now: tokens would come early.
func (l *limit) capped(k lack) lack {
	if l.tick == 1 || l.Refill != Greedy || k.spent == 0 {
		return k
	}
	phase := k.aux % l.tick
	// phase × step ÷ tick, without leaving the exact range.
	came := phase*(l.step/l.tick) + phase*(l.step%l.tick)/l.tick
	if k.spent*l.unit-k.aux/l.tick <= came {
		return lack{}
	}
	return k
}

// adopt returns k, written under old, as what l lacks at the same moment.
func (l *limit) adopt(old *limit, k lack) lack {
	k.spent = min(k.spent, l.most)
	if k.spent == 0 || !l.keeps(old) {
		k.aux = 0
	}
	return k
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
