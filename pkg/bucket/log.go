package bucket

import "slices"

// An Entry is what a Sliding limit remembers of its charges: tokens that were
// taken at one moment, or within a 64th of a period before it. With Greedy it
// is tokens whose leases end at that moment or, by a 16th of the time that they
// were leased for, before it.
type Entry struct {
	At     int64 // µs since the Unix epoch
	Tokens int64 // above 0
}

// The logs that these methods get are shared, and never assigned to.

// slide returns p, which stands at the moment at, as it stands at now.
func (l *limit) slide(p Part, at, now int64) Part {
	if p.Spent == 0 || p.Log[len(p.Log)-1].At <= now-l.perUS {
		return Part{}
	}
	p.Aux = min(p.Aux+now-at, l.slot)
	return p.since(now - l.perUS)
}

// spendPart returns p, at the moment at, with cost more tokens spent: as many
// as there are, or as can be given back.
func (l *limit) spendPart(p Part, at, cost int64) Part {
	switch spent := max(min(p.Spent+clamp(cost), l.burst), 0); {
	case spent == 0:
		return Part{}
	case spent > p.Spent:
		return p.add(at, spent-p.Spent, l.slot)
	default:
		return p.giveBack(p.Spent-spent, l.slot)
	}
}

// since returns p without the entries of up to the moment.
func (p Part) since(moment int64) Part {
	for len(p.Log) > 0 && p.Log[0].At <= moment {
		p.Spent -= p.Log[0].Tokens
		p.Log = p.Log[1:]
	}
	return p
}

// leaves returns the moment of the charge whose tokens, with those before it,
// are n or more.
func leaves(log []Entry, n int64) int64 {
	for _, e := range log {
		if n -= e.Tokens; n <= 0 {
			return e.At
		}
	}
	return 0
}

// add returns p with tokens taken at the moment at, which is no earlier than
// any before. A charge in the newest entry's slot makes it one of its moment.
func (p Part) add(at, tokens, slot int64) Part {
	log := make([]Entry, len(p.Log), len(p.Log)+1)
	copy(log, p.Log)
	p.Spent += tokens
	if n := len(log); n > 0 && p.Aux < slot {
		log[n-1] = Entry{at, log[n-1].Tokens + tokens}
	} else {
		log, p.Aux = append(log, Entry{at, tokens}), 0
	}
	p.Log = log
	return p
}

// giveBack returns p without so many of the tokens that were taken last.
func (p Part) giveBack(tokens, slot int64) Part {
	p.Spent -= tokens
	n := len(p.Log)
	for n > 0 && p.Log[n-1].Tokens <= tokens {
		n--
		tokens -= p.Log[n].Tokens
		p.Aux = slot
	}
	p.Log = p.Log[:n:n]
	if n > 0 && tokens > 0 {
		p.Log = slices.Clone(p.Log)
		p.Log[n-1].Tokens -= tokens
	}
	return p
}

// shifted returns log with all its charges so many µs earlier.
func shifted(log []Entry, by int64) []Entry {
	log = slices.Clone(log)
	for i := range log {
		log[i].At -= by
	}
	return log
}

// adoptPart returns p, written under old, as what l lacks at the same moment.
// Another mode has one charge, at that moment, of what was leased too.
func (l *limit) adoptPart(old *limit, p Part, at int64) Part {
	if old.Refill == Greedy {
		p.Spent += sum(p.Log)
	}
	switch spent := min(p.Spent, l.burst); {
	case spent == 0:
		return Part{}
	case old.Refill != Sliding:
		return Part{Spent: spent, Log: []Entry{{at, spent}}}
	}
	return l.adoptLog(old, p, at)
}

// adoptLog returns p, of the sliding limit old, under l. The charges stay
// where they were. With another period, those of one of its slots are merged;
// what exceeds a lower burst is taken from the oldest, so that nothing comes
// back sooner than the charges that are left allow.
func (l *limit) adoptLog(old *limit, p Part, at int64) Part {
	if l.perMS != old.perMS {
		p = p.since(at-l.perUS).regrouped(at, l.slot)
	}
	over := p.Spent - l.burst
	if over <= 0 {
		return p
	}
	return Part{Spent: l.burst, Aux: p.Aux, Log: without(p.Log, over)}
}

// without returns log less so many of its first tokens.
func without(log []Entry, tokens int64) []Entry {
	n := 0
	for n < len(log) && log[n].Tokens <= tokens {
		tokens -= log[n].Tokens
		n++
	}
	if log = log[n:]; len(log) == 0 {
		return nil
	}
	if tokens > 0 {
		log = slices.Clone(log)
		log[0].Tokens -= tokens
	}
	return log
}

// regrouped returns p, at the moment at, with its entries merged by slots that
// begin with the first entry in them.
func (p Part) regrouped(at, slot int64) Part {
	log, first := make([]Entry, 0, len(p.Log)), int64(0)
	for _, e := range p.Log {
		if n := len(log); n > 0 && e.At-first < slot {
			log[n-1] = Entry{e.At, log[n-1].Tokens + e.Tokens}
			continue
		}
		log, first = append(log, e), e.At
	}
	if len(log) == 0 {
		return Part{}
	}
	return Part{Spent: p.Spent, Aux: min(at-first, slot), Log: log}
}

// logged returns p, at the moment at, with a log that l can have: with one
// charge at that moment if its own is not.
func (l *limit) logged(p Part, at int64) Part {
	p.Aux = min(max(p.Aux, 0), l.slot)
	last, sum := at-l.perUS, int64(0)
	for _, e := range p.Log {
		if e.At <= last || e.At > at || e.Tokens <= 0 || e.Tokens > p.Spent {
			sum = -1
			break
		}
		last, sum = e.At, sum+e.Tokens
	}
	if sum != p.Spent || len(p.Log) > 2*slots {
		return Part{Spent: p.Spent, Log: []Entry{{at, p.Spent}}}
	}
	return p
}
