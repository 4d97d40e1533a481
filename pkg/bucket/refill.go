package bucket

// How the next tokens are on their way is one number, state.aux, relative to
// the bucket's at:
//
//	greedy    fraction × tick + phase: the parts of a token (of unit) that
//	          have accrued, and the µs of a tick that have passed
//	interval  the µs since the period began

// fresh is the state of a full limit.
func (l *limit) fresh() state {
	return state{name: l.name, refill: l.Refill, perMS: l.perMS, tokens: l.Tokens}
}

// refill returns s after elapsed µs.
func (l *limit) refill(s state, elapsed int64) state {
	if s.spent == 0 || l.Tokens == 0 {
		s.spent, s.aux = 0, 0
		return s
	}
	if elapsed >= l.wait(s, s.spent) {
		s.spent, s.aux = 0, 0
		return s
	}
	if l.Refill == Interval {
		since := elapsed + s.aux
		s.spent -= since / l.perUS * l.Tokens
		s.aux = since % l.perUS
		return s
	}
	since := elapsed + s.aux%l.tick
	parts := s.aux/l.tick + since/l.tick*l.step
	s.spent -= parts / l.unit
	s.aux = parts%l.unit*l.tick + since%l.tick
	return s
}

// wait returns the µs until n of the spent tokens of s are back, 1 ≤ n ≤
// s.spent.
func (l *limit) wait(s state, n int64) int64 {
	if n <= 0 || l.Tokens == 0 {
		return 0
	}
	if l.Refill == Interval {
		return ceil(n, l.Tokens)*l.perUS - s.aux
	}
	return ceil(n*l.unit-s.aux/l.tick, l.step)*l.tick - s.aux%l.tick
}

// adopt returns old, written under other limits perhaps, as states of ls, each
// at the same moment. Limits are matched by name, else by period, else by
// position; one without a match is full.
func (ls *Limits) adopt(old []state) []state {
	states := make([]state, len(ls.list))
	from := ls.match(old)
	for i := range ls.list {
		l := &ls.list[i]
		states[i] = l.fresh()
		if from[i] < 0 {
			continue
		}
		s := old[from[i]]
		states[i].spent = min(s.spent, l.burst)
		if l.keeps(s) && states[i].spent > 0 {
			states[i].aux = s.aux
		}
	}
	return states
}

// keeps says that what s has under way counts under l as well: l brings its
// tokens at the same moments as the limit that wrote s.
func (l *limit) keeps(s state) bool {
	same := s.refill == l.Refill && s.perMS == l.perMS
	return same && (l.Refill == Interval || s.tokens == l.Tokens)
}

// match returns for each limit the place of its state in old, or -1.
func (ls *Limits) match(old []state) [MaxLimits]int {
	var from [MaxLimits]int
	var taken [MaxLimits]bool
	for i := range ls.list {
		from[i] = -1
	}
	for _, fits := range []func(i, j int) bool{
		func(i, j int) bool { return ls.list[i].name != 0 && ls.list[i].name == old[j].name },
		func(i, j int) bool { return ls.list[i].perMS == old[j].perMS },
		func(i, j int) bool { return i == j },
	} {
		for i := range ls.list {
			for j := range old {
				if from[i] < 0 && !taken[j] && fits(i, j) {
					from[i], taken[j] = j, true
				}
			}
		}
	}
	return from
}

// ceil returns a/b rounded up, for a ≥ 0 and b > 0.
func ceil(a, b int64) int64 {
	if a <= 0 {
		return 0
	}
	return (a-1)/b + 1
}
