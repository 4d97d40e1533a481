package policy

import (
	"errors"
	"strings"

	"cel.dev/cel-go/common/types"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

func (c *compiler) rules() {
	if len(c.spec.Rules) == 0 {
		c.warn("rules", "none", "at least one rule, else nothing is limited", "")
	}
	c.policy.rules = make([]rule, len(c.spec.Rules))
	first := make(map[string]int)
	for i := range c.spec.Rules {
		name := c.spec.Rules[i].Name
		path := place("rules", i) + ".name"
		c.name(path, name, ruleName)
		if j, ok := first[name]; ok && name != "" {
			c.fault(path, quote(name)+", which is "+place("rules", j)+"'s as well", "a name of its own: buckets and metrics go by it", "rename one")
		} else {
			first[name] = i
		}
		c.policy.rules[i] = c.rule(i)
	}
	c.stops()
	c.invited()
}

func (c *compiler) rule(i int) rule {
	s, path := &c.spec.Rules[i], place("rules", i)
	r := rule{Rule: c.export(s), stop: s.Stop && !s.Shadow}
	switch {
	case s.Descriptor != nil:
		c.eitherOr(s, path)
		c.descriptor(&r, s, path, int32(i))
	default:
		c.policy.answers = true
		c.match(&r, s.Match, path, int32(i))
		c.per(&r, s, path)
		c.cost(&r, s, path)
	}
	r.limits = c.limitsOrNone(path, s.Limits, s.Unlimited, s.makeLimits())
	if s.MaxDebt != 0 && !s.Debt {
		c.fault(path+".max_debt", "max_debt without debt", "debt: true beside it", "")
	}
	c.overrides(&r, s, path)
	c.hopeless(&r, path)
	c.lease(&r, s, path+".lease")
	c.deny(path+".deny", s.Deny)
	if s.Stop && s.Shadow {
		c.warn(path+".stop", "stop with shadow", "one of them: a shadow rule stops nothing", "")
	}
	return r
}

// export makes the part of a rule that later steps see.
func (c *compiler) export(s *RuleSpec) *Rule {
	r := &Rule{
		Domain: c.spec.Domain, Name: s.Name, Shadow: s.Shadow, Descriptor: s.Descriptor != nil,
		OnError: c.spec.OnError, Deny: s.Deny, Headers: c.shown,
	}
	if s.OnError != nil {
		r.OnError = *s.OnError
	}
	if r.Deny.Status == 0 {
		r.Deny.Status = 429
	}
	if r.Deny.Body != "" && r.Deny.ContentType == "" {
		r.Deny.ContentType = "text/plain"
	}
	return r
}

func (c *compiler) match(r *rule, m *MatchSpec, path string, id int32) {
	if m == nil {
		m = &MatchSpec{}
	}
	path += ".match"
	if m.Path == "" {
		c.policy.paths.all = append(c.policy.paths.all, id)
	} else {
		c.addPath(&c.policy.paths, path+".path", m.Path, id)
	}
	c.methods(path+".methods", m.Methods)
	c.exempted(path, m)
	r.match.methods = append(r.match.methods, m.Methods...)
	var faults []Fault
	r.match.hosts, faults = parseHosts(m.Hosts)
	c.under(path+".hosts", faults...)
	c.matchHeaders(r, path+".headers", m.Headers)
	if m.When != "" {
		c.when(r, strings.TrimSuffix(path, ".match"), m.When)
	}
}

// when compiles the expression that a match has, which must not be the same
// for all requests.
func (c *compiler) when(r *rule, path, text string) {
	when, always := c.expression(path, "match.when", text, wishTruth)
	r.when = when
	switch always {
	case types.False:
		c.fault(path+".match.when", quote(text)+", which is never true", "an expression that can be, else the rule never applies", "")
	case types.True:
		c.warn(path+".match.when", quote(text)+", which is always true", "an expression that need not be", "leave it out")
		r.when = nil
	}
}

func (c *compiler) matchHeaders(r *rule, path string, headers []HeaderSpec) {
	for _, h := range headers {
		switch {
		case !isToken(h.Name):
			c.fault(path+"."+h.Name, quote(h.Name), "a header's name", "")
		case strings.TrimSpace(h.Value) != h.Value || h.Value == "" || strings.Contains(h.Value, ","):
			c.fault(path+"."+h.Name, quote(h.Value), "one value, without a comma or spaces around it, since others never come", "")
		}
		h.Name = strings.ToLower(h.Name)
		r.match.headers = append(r.match.headers, h)
	}
}

// exempted refuses a match that nothing comes to, since all of it is exempt.
func (c *compiler) exempted(path string, m *MatchSpec) {
	e := &c.spec.Exempt
	if len(m.Methods) > 0 && containsAll(e.Methods, m.Methods) {
		c.fault(path+".methods", "methods that are all exempt", "one that is not, else the rule never applies", "")
	}
	for _, p := range e.Paths {
		if m.Path != "" && c.coversPath(p, m.Path) {
			c.fault(path+".path", quote(m.Path)+", which exempt.paths has as "+quote(p), "a path that is not exempt, else the rule never applies", "")
			return
		}
	}
}

func (c *compiler) descriptor(r *rule, s *RuleSpec, path string, id int32) {
	path += ".descriptor"
	if len(s.Descriptor) == 0 {
		c.fault(path, "no entries", "at least one entry, such as generic_key=login", "")
		return
	}
	entries := make([]EntrySpec, len(s.Descriptor))
	for i, e := range s.Descriptor {
		if e.Key == "" {
			c.fault(place(path, i), quote("="+e.Value), "an entry's key, or key=value", "")
		}
		if !e.Any && holdsAddress(e.Key) && !isAddress(e.Key, e.Value) {
			c.fault(place(path, i), quote(e.Key+"="+e.Value), "an address, since other values never come", "")
		}
		e.Value = c.policy.callerOf(e.Key, e.Value)
		entries[i] = e
	}
	r.order = keyOrder(entries)
	c.policy.entries.add(entries, id)
}

// A maker makes limits ready.
type maker func(...bucket.Limit) (*bucket.Limits, error)

func (r *RuleSpec) makeLimits() maker {
	if !r.Debt {
		return bucket.NewLimits
	}
	return func(limits ...bucket.Limit) (*bucket.Limits, error) {
		return bucket.NewDebtLimits(r.MaxDebt, limits...)
	}
}

// limits makes limits ready, one by one so that all faults are found.
func (c *compiler) limits(path string, limits []bucket.Limit, ready maker) *bucket.Limits {
	names := make(map[string]bool)
	for i, l := range limits {
		at := place(path, i)
		if _, err := ready(l); err != nil {
			c.limit(at, err)
		} else if l.Tokens == 0 {
			c.warn(at+".rate", "a rate of 0", "at least 1 token: this denies every request", "")
		}
		if l.Name == "" {
			continue
		}
		c.name(at+".name", l.Name, ruleName)
		if names[l.Name] {
			c.fault(at+".name", "a second limit "+quote(l.Name), "one of each name", "")
		}
		names[l.Name] = true
	}
	all, err := ready(limits...)
	if err != nil && (len(limits) == 0 || len(limits) > bucket.MaxLimits) {
		c.limit(path, err)
	}
	return all
}

// limit adds what is wrong with the limit at path, in the file's words: its
// rate is the tokens and the period.
func (c *compiler) limit(path string, err error) {
	var e *bucket.RangeError
	if !errors.As(err, &e) {
		return
	}
	switch e.Field {
	case "limits":
		c.fault(path, e.Found, e.Want, "")
	case "max_debt": // is the rule's
		c.fault(path[:strings.IndexByte(path, ']')+1]+".max_debt", e.Found, e.Want, "")
	case "tokens":
		c.fault(path+".rate", e.Found+" tokens", e.Want, "")
	case "per":
		c.fault(path+".rate", "a period of "+e.Found, e.Want, "")
	default:
		c.fault(path+"."+e.Field, e.Found, e.Want, "")
	}
}
