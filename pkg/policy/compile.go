package policy

import (
	"errors"
	"strings"

	"cel.dev/cel-go/cel"

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

		patterns: make(map[string]readPattern),
	}
	if s.Tree == nil {
		c.name("domain", s.Domain, domainName)
	}
	c.edge()
	c.identities()
	c.exempt()
	c.headers()
	if s.Tree != nil {
		c.tree()
	} else {
		c.rules()
		c.unused()
		c.doubts()
	}
	c.policy.words = c.words()
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
	shown  *Headers
	trusts bool // somebody's word on a caller may be taken
	faults []Fault

	patterns map[string]readPattern
	env      *cel.Env // nil until there is an expression
	looks    int      // see maxLooks
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
	if t := &c.spec.Trust; t.Header != "" && len(t.Proxies) == 0 && t.Hops == 0 {
		c.warn("trust.header", quote(t.Header)+", which is not looked at", "trust.proxies or trust.hops, which say who may write it", "or leave it out")
	}
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
	if id.Source.Header != "" && id.Source.Always {
		c.policy.believed = append(c.policy.believed, strings.ToLower(id.Source.Header))
	}
	return part{
		name:     id.Name,
		source:   source,
		hide:     source.Hash(),
		missing:  id.Missing,
		chosen:   id.Source.Always && (id.Source.Header != "" || id.Source.Bearer || id.Source.Cookie != "" || id.Source.Query != ""),
		anybodys: id.Source.Always && (id.Source.Header != "" || id.Source.Query != ""),
	}
}

func (c *compiler) exempt() {
	e := &c.policy.exempt
	for i, text := range c.spec.Exempt.Paths {
		c.addPath(&e.paths, place("exempt.paths", i), text, int32(i))
		if p := c.pattern(text).pattern; p.regex != nil && !anchored(p.regex) {
			c.warn(place("exempt.paths", i), quote(text)+", which is found anywhere in a path", "an expression that begins with ^: a client that adds such an end to a path is not limited", "")
		}
	}
	c.methods("exempt.methods", c.spec.Exempt.Methods)
	e.methods = append(e.methods, c.spec.Exempt.Methods...)
	var err error
	e.clients, err = identity.NewNetworks(c.spec.Exempt.IPs)
	c.specErrors("exempt.ips", err)
}

// addPath adds the pattern text to index.
func (c *compiler) addPath(index *pathIndex, path, text string, id int32) {
	p := c.pattern(text)
	if p.fault != nil {
		c.under(path, *p.fault)
		return
	}
	index.add(p.pattern, id)
}

// A readPattern is a pattern or what is wrong with it.
type readPattern struct {
	pattern
	fault *Fault // without a path
}

// pattern reads text, once for all the rules that it is compared with.
func (c *compiler) pattern(text string) readPattern {
	read, ok := c.patterns[text]
	if !ok {
		read.pattern, read.fault = parsePattern(text)
		c.patterns[text] = read
	}
	return read
}

// coversPath says that the pattern a matches every path that b does. "" is
// every path.
func (c *compiler) coversPath(a, b string) bool {
	if a == "" || b == "" {
		return a == ""
	}
	p, q := c.pattern(a), c.pattern(b)
	return p.fault == nil && q.fault == nil && p.covers(q.pattern)
}
