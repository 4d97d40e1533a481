package policy

import (
	"errors"
	"strings"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/descriptors"
	"github.com/sluice-mesh/sluice/pkg/identity"
)

// Options are what compiling needs besides the policy itself.
type Options struct {
	// HashKey keys the hashes of values that are hidden in keys; replicas
	// need the same one. Without it anybody who sees a store can try out
	// which secret a hash is of.
	HashKey []byte
}

// Compile checks s as a whole and makes it ready. The Policy is nil if a fault
// is no mere warning; all faults come at once.
// Compile keeps no memory of s.
func Compile(s Spec, o Options) (*Policy, []Fault) {
	c := compiler{
		spec:   s,
		policy: &Policy{File: s.File, Domain: s.Domain, keyer: descriptors.NewKeyer(o.HashKey)},
		named:  make(map[string]part),
		used:   make(map[string]bool),
	}
	c.name("domain", s.Domain, domainName)
	c.edge()
	c.identities()
	c.exempt()
	c.rules()
	c.headers()
	c.unused()
	for i := range c.faults {
		c.faults[i].File = s.File
		if !c.faults[i].Warning {
			c.policy = nil
		}
	}
	return c.policy, c.faults
}

// A compiler makes one policy of one spec.
type compiler struct {
	spec   Spec
	policy *Policy // nil once a fault was found and all were looked for
	named  map[string]part
	used   map[string]bool // identities that a rule names
	trusts bool            // somebody's word on a caller may be taken
	faults []Fault
}

func (c *compiler) fault(path, found, want, do string) {
	c.faults = append(c.faults, Fault{Path: path, Found: found, Want: want, Do: do})
}

func (c *compiler) warn(path, found, want, do string) {
	c.faults = append(c.faults, Fault{Path: path, Found: found, Want: want, Do: do, Warning: true})
}

// under adds fs, whose paths begin below path.
func (c *compiler) under(path string, fs ...Fault) {
	for _, f := range fs {
		f.Path = path + f.Path
		c.faults = append(c.faults, f)
	}
}

// specErrors adds what identity found wrong below path.
func (c *compiler) specErrors(path string, err error) {
	var all identity.SpecErrors
	if err == nil || !errors.As(err, &all) {
		return
	}
	for _, e := range all {
		field := e.Field
		if field != "" && field[0] != '[' {
			field = "." + field
		}
		c.fault(path+field, e.Found, e.Want, "")
	}
}

func (c *compiler) edge() {
	edge, err := identity.NewEdge(c.spec.Trust)
	c.specErrors("trust", err)
	c.policy.Edge = edge
	c.trusts = err != nil || edge.TrustsPeers()
}

func (c *compiler) identities() {
	for _, id := range c.spec.Identities {
		path := "identities." + id.Name
		c.name(path, id.Name, identityName)
		if _, ok := builtins[id.Name]; ok {
			c.fault(path, quote(id.Name), "another name: this one is built in", "")
		}
		if _, ok := c.named[id.Name]; ok {
			c.fault(path, "two identities "+quote(id.Name), "one of each name", "")
		}
		c.named[id.Name] = c.identity(path, id)
	}
}

func (c *compiler) identity(path string, id IdentitySpec) part {
	c.missing(path+".missing", id.Missing)
	source, err := identity.NewSource(id.Source)
	c.specErrors(path, err)
	if err == nil && source.NeedsTrust() && !c.trusts {
		c.fault(path, "a value that a client can write, and no trust.proxies whose word is taken",
			"somebody who vouches for it, else it is always missing", "list the proxies that set it in trust.proxies, or say believe: always")
	}
	return part{
		name:    id.Name,
		source:  source,
		hide:    source.Hash(),
		missing: id.Missing,
		chosen:  id.Source.Always && (id.Source.Header != "" || id.Source.Bearer || id.Source.Cookie != "" || id.Source.Query != ""),
	}
}

func (c *compiler) exempt() {
	e := &c.policy.exempt
	for i, text := range c.spec.Exempt.Paths {
		c.addPath(&e.paths, place("exempt.paths", i), text, int32(i))
	}
	c.methods("exempt.methods", c.spec.Exempt.Methods)
	e.methods = append(e.methods, c.spec.Exempt.Methods...)
	var err error
	e.clients, err = identity.NewNetworks(c.spec.Exempt.IPs)
	c.specErrors("exempt.ips", err)
}

// addPath adds the pattern text to index.
func (c *compiler) addPath(index *pathIndex, path, text string, id int32) {
	p, fault := parsePattern(text)
	if fault != nil {
		c.under(path, *fault)
		return
	}
	index.add(p, id)
}

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
	}
	r.limits = c.limits(path+".limits", s.Limits)
	c.deny(path+".deny", s.Deny)
	if s.Stop && s.Shadow {
		c.warn(path+".stop", "stop with shadow", "one of them: a shadow rule stops nothing", "")
	}
	return r
}

// export makes the part of a rule that later steps see.
func (c *compiler) export(s *RuleSpec) *Rule {
	r := &Rule{
		Domain: c.spec.Domain, Name: s.Name, Shadow: s.Shadow,
		OnError: c.spec.OnError, Deny: s.Deny, Headers: &c.spec.Headers,
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
	r.match.methods = append(r.match.methods, m.Methods...)
	var faults []Fault
	r.match.hosts, faults = parseHosts(m.Hosts)
	c.under(path+".hosts", faults...)
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
		e.Value = c.policy.callerOf(e.Key, e.Value)
		entries[i] = e
	}
	r.order = keyOrder(entries)
	c.policy.entries.add(entries, id)
}

// limits makes limits ready, one by one so that all faults are found.
func (c *compiler) limits(path string, limits []bucket.Limit) *bucket.Limits {
	names := make(map[string]bool)
	for i, l := range limits {
		at := place(path, i)
		if _, err := bucket.NewLimits(l); err != nil {
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
	ready, err := bucket.NewLimits(limits...)
	if err != nil && (len(limits) == 0 || len(limits) > bucket.MaxLimits) {
		c.limit(path, err)
	}
	return ready
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
	case "tokens", "per":
		c.fault(path+".rate", map[string]string{"tokens": "", "per": "a period of "}[e.Field]+e.Found, e.Want, "")
	default:
		c.fault(path+"."+e.Field, e.Found, e.Want, "")
	}
}

func (c *compiler) per(r *rule, s *RuleSpec, path string) {
	c.missing(path+".missing", s.Missing)
	if len(s.Per) > maxPer {
		c.fault(path+".per", number(len(s.Per))+" names", "at most "+number(maxPer), "")
	}
	seen := make(map[string]bool)
	for i, name := range s.Per {
		at := place(path+".per", i)
		p, ok := c.part(at, name)
		if !ok {
			continue
		}
		if seen[p.name] {
			c.fault(at, "a second "+quote(name), "each name once", "")
		}
		seen[p.name] = true
		p.missing = firstSet(s.Missing, p.missing, defaultMissing)
		r.per = append(r.per, p)
	}
	c.chosen(r, s, path)
}

// maxPer is the most names in a per.
const maxPer = 16

func firstSet(all ...Missing) Missing {
	for _, m := range all {
		if m.Kind != MissingUnset {
			return m
		}
	}
	return Missing{}
}

// part finds what name in a per stands for.
func (c *compiler) part(path, name string) (part, bool) {
	if b, ok := builtins[name]; ok {
		return part{name: name, from: b}, true
	}
	if p, ok := c.named[name]; ok {
		c.used[name] = true
		return p, true
	}
	spec, chosen, ok := perSource(name)
	if !ok {
		c.fault(path, quote(name), "ip, path, method, host, header.NAME, query.NAME, cookie.NAME, metadata.PATH, context.KEY"+c.listed(), "")
		return part{}, false
	}
	if spec.Header != "" {
		name = strings.ToLower(name)
	}
	source, err := identity.NewSource(spec)
	var all identity.SpecErrors
	if errors.As(err, &all) {
		c.fault(path, quote(name), all[0].Want, "")
		return part{}, false
	}
	return part{name: name, source: source, hide: source.Hash(), chosen: chosen}, true
}

// listed lists the policy's own identities for a fault.
func (c *compiler) listed() string {
	if len(c.spec.Identities) == 0 {
		return ""
	}
	names := make([]string, len(c.spec.Identities))
	for i, id := range c.spec.Identities {
		names[i] = id.Name
	}
	return ", or one of identities: " + strings.Join(names, ", ")
}
