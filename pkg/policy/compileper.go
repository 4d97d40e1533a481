package policy

import (
	"errors"
	"strings"

	"github.com/sluice-mesh/sluice/pkg/identity"
)

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
	c.skips(r, s, path)
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
	return part{name: name, source: source, hide: source.Hash(), chosen: chosen, anybodys: chosen}, true
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
