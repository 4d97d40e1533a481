package policy

import (
	"regexp"
	"slices"
	"strings"
)

// maxLooks bounds the pairs of rules that are looked at for warnings. A policy
// of thousands of rules that all match every path is warned of less.
const maxLooks = 1_000_000

// also returns the rules, other than j and in force, that apply to what rule j
// is for wherever it comes at path, one without patterns. Without ok there
// were too many to look at.
func (c *compiler) also(path string, j int) (others []int, ok bool) {
	paths := &c.policy.paths
	if c.looks += len(paths.all) + len(paths.regex); c.looks > maxLooks {
		return nil, false
	}
	b, found := &c.policy.rules[j], paths.find(path, nil)
	c.looks += len(found)
	for _, id := range found {
		a := &c.policy.rules[id]
		if int(id) != j && !a.Shadow && a.limits != nil && a.match.covers(&b.match) && a.when.covers(b.when) {
			others = append(others, int(id))
		}
	}
	return others, true
}

// around returns the rules, other than j and in force, that apply to all that
// rule j does.
func (c *compiler) around(j int) (others []int, ok bool) {
	path := c.spec.Rules[j].path()
	others, ok = c.also(example(path), j)
	outer := others[:0]
	for _, i := range others {
		if c.coversPath(c.spec.Rules[i].path(), path) {
			outer = append(outer, i)
		}
	}
	return outer, ok
}

// example returns a path that pattern matches. That of a regular expression
// is one that only rules without a path match for sure.
func example(pattern string) string {
	if !strings.HasPrefix(pattern, "/") {
		return "*"
	}
	segments := strings.Split(strings.TrimSuffix(pattern, "/*"), "/")
	for i, s := range segments {
		if isPlaceholder(s) {
			segments[i] = "1"
		}
	}
	return NormalPath(strings.Join(segments, "/"))
}

// doubts warns of rules that are as their author wrote them, but may not do
// what was meant. They wait until nothing is wrong.
func (c *compiler) doubts() {
	if !slices.ContainsFunc(c.faults, func(f Fault) bool { return !f.Warning }) {
		c.escapes()
		c.loose()
	}
}

// escapes warns of what a client can write to get past a rule.
func (c *compiler) escapes() {
	for j := range c.policy.rules {
		if c.spec.Rules[j].Descriptor == nil && c.policy.rules[j].limits != nil {
			c.spellings(j)
			c.leavesOut(j)
			c.anybody(j)
		}
	}
}

// spellings warns of an exact path without the one beside it that most
// upstreams take for the same: with a slash at its end, or without. Case is
// part of the advice alone, since few of them fold it.
func (c *compiler) spellings(j int) {
	path := c.spec.Rules[j].path()
	if len(path) < 2 || path[0] != '/' || strings.HasSuffix(path, "/*") {
		return
	}
	other := otherEnd(path)
	if others, ok := c.also(example(other), j); ok && len(others) == 0 {
		c.warn(place("rules", j)+".match.path", quote(path)+" but no rule for "+quote(other),
			"one for both, if they reach the same",
			"write "+quote(strings.TrimSuffix(path, "/")+"/*")+"; or "+quote(anySpelling(path))+" where case does not count; or a rule around this one")
	}
}

func otherEnd(path string) string {
	if bare, ok := strings.CutSuffix(path, "/"); ok {
		return bare
	}
	return path + "/"
}

// anySpelling is a pattern for path in both cases and with both ends.
func anySpelling(path string) string {
	segments := strings.Split(strings.TrimSuffix(path, "/"), "/")
	for i, s := range segments {
		segments[i] = regexp.QuoteMeta(s)
		if isPlaceholder(s) {
			segments[i] = "[^/]+"
		}
	}
	return "~(?i)^" + strings.Join(segments, "/") + "/?$"
}

// leavesOut warns of a header that a client need not send.
func (c *compiler) leavesOut(j int) {
	for _, h := range c.policy.rules[j].match.headers {
		if h.Name == "upgrade" { // who leaves it out asks for something else
			continue
		}
		others, ok := c.around(j)
		for _, i := range others {
			ok = ok && len(c.policy.rules[i].match.headers) > 0
		}
		if ok {
			c.warn(place("rules", j)+".match.headers", "a header that any client can leave out",
				"a rule without headers beside it: a client without "+h.Name+" is not limited by "+quote(c.spec.Rules[j].Name), "")
			return
		}
	}
}

// anybody warns where a client gets another bucket by what it writes.
func (c *compiler) anybody(j int) {
	r := &c.policy.rules[j]
	if r.isBound() {
		return
	}
	for i := range r.per {
		if !r.per[i].anybodys {
			continue
		}
		others, ok := c.around(j)
		for _, i := range others {
			ok = ok && !c.policy.rules[i].isBound()
		}
		if ok {
			c.warn(place("rules", j)+".per", r.per[i].name+" with nothing better",
				"ip or an identity that somebody vouches for beside it, or in a rule of its own: a client that changes it gets a fresh bucket", "")
		}
		return
	}
}

// isBound says that a client cannot change its bucket, or not alone.
func (r *rule) isBound() bool {
	for i := range r.per {
		if p := &r.per[i]; p.from == fromIP || p.from == fromSource && !p.anybodys {
			return true
		}
	}
	return len(r.per) == 0
}
