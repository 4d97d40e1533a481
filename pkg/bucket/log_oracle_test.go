package bucket_test

import "github.com/sluice-mesh/sluice/pkg/bucket"

// slot is the time within which charges are one.
func slot(l bucket.Limit) int64 { return (l.Per.Microseconds() + 63) / 64 }

func slidden(groups []charged) lack {
	k := lack{tokens: rat(0), groups: groups}
	for _, g := range groups {
		k.tokens.Add(k.tokens, rat(g.tokens))
	}
	return k
}

// regroup brings groups under another period.
func regroup(l bucket.Limit, groups []charged, at int64) []charged {
	var merged []charged
	for _, g := range groups {
		if g.last+l.Per.Microseconds() <= at {
			continue
		}
		if n := len(merged) - 1; n >= 0 && g.last < merged[n].first+slot(l) {
			merged[n] = charged{merged[n].first, g.last, merged[n].tokens + g.tokens}
			continue
		}
		merged = append(merged, charged{g.last, g.last, g.tokens})
	}
	return merged
}

// newest is the last n tokens of groups.
func newest(groups []charged, n int64) []charged {
	var kept []charged
	for i := len(groups) - 1; i >= 0 && n > 0; i-- {
		g := groups[i]
		g.tokens = min(g.tokens, n)
		n -= g.tokens
		kept = append([]charged{g}, kept...)
	}
	return kept
}

// slide charges or gives back to the newest.
func slide(l bucket.Limit, k lack, now, cost int64) lack {
	if cost <= 0 {
		var sum int64
		for _, g := range k.groups {
			sum += g.tokens
		}
		return slidden(oldest(k.groups, sum+cost))
	}
	groups := append([]charged(nil), k.groups...)
	if n := len(groups) - 1; n >= 0 && now < groups[n].first+slot(l) {
		groups[n] = charged{groups[n].first, now, groups[n].tokens + cost}
		return slidden(groups)
	}
	return slidden(append(groups, charged{now, now, cost}))
}

// oldest is the first n tokens of groups.
func oldest(groups []charged, n int64) []charged {
	var kept []charged
	for _, g := range groups {
		if g.tokens = min(g.tokens, n); g.tokens > 0 {
			kept = append(kept, g)
		}
		n -= g.tokens
	}
	return kept
}
