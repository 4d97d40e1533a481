package policy

import "slices"

// skips warns where a client decides by what it writes whether a rule applies.
func (c *compiler) skips(r *rule, s *RuleSpec, path string) {
	for i := range r.per {
		p := &r.per[i]
		if !p.chosen || p.missing.Kind != MissingSkip {
			continue
		}
		at := path + ".missing"
		if s.Missing.Kind == MissingUnset {
			at = "identities." + p.name + ".missing"
		}
		c.warn(at, "skip where "+p.name+" is missing", "share, ip or a status: a client that leaves it out is not limited by "+quote(s.Name), "")
	}
}

// invited warns where a client gets past later rules by a header that it
// writes.
func (c *compiler) invited() {
	for i := range c.policy.rules {
		later := c.spec.Rules[i+1:]
		isForRequests := func(s RuleSpec) bool { return s.Descriptor == nil }
		if r := &c.policy.rules[i]; r.stop && len(r.match.headers) > 0 && slices.ContainsFunc(later, isForRequests) {
			c.warn(place("rules", i)+".match.headers", "headers with stop", "no stop, or a when, which sees believed headers alone: a client that writes them is not limited by later rules", "")
		}
	}
}

// unused warns of identities that no rule names.
func (c *compiler) unused() {
	for _, id := range c.spec.Identities {
		if !c.used[id.Name] {
			c.warn("identities."+id.Name, "an identity that no rule names", "its name in a rule's per", "name it, or take it out")
		}
	}
}

// stops warns of rules that come after one which always stops the search
// before them.
func (c *compiler) stops() {
	var stopping []int
	for j := range c.policy.rules {
		for _, i := range stopping {
			if c.hides(i, j) {
				c.warn(place("rules", j), "a rule after "+quote(c.spec.Rules[i].Name)+", which stops the search wherever this one matches",
					"a rule that can apply", "put it before "+place("rules", i)+", or take that one's stop away")
				break
			}
		}
		if c.policy.rules[j].stop {
			stopping = append(stopping, j)
		}
	}
}

// hides says that rule i stops the search wherever rule j matches. One with a
// when does not: where that fails, it applies without stopping.
func (c *compiler) hides(i, j int) bool {
	a := &c.policy.rules[i]
	before, after := &c.spec.Rules[i], &c.spec.Rules[j]
	if (before.Descriptor == nil) != (after.Descriptor == nil) {
		return false
	}
	if before.Descriptor != nil {
		return coversEntries(before.Descriptor, after.Descriptor)
	}
	for k := range a.per {
		if a.per[k].missing.Kind == MissingSkip {
			return false
		}
	}
	return a.when == nil && c.covers(i, j)
}

// covers says that rule i, which is for requests, matches whatever rule j does.
func (c *compiler) covers(i, j int) bool {
	a, b := &c.policy.rules[i], &c.policy.rules[j]
	return a.match.covers(&b.match) && a.when.covers(b.when) && c.coversPath(c.spec.Rules[i].path(), c.spec.Rules[j].path())
}

func coversEntries(a, b []EntrySpec) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Key != b[i].Key || !a[i].Any && (b[i].Any || a[i].Value != b[i].Value) {
			return false
		}
	}
	return true
}
