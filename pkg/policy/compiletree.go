package policy

import (
	"maps"
	"slices"
	"strings"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/descriptors"
)

// maxDomain bounds the domain of a tree, which may be any text.
const maxDomain = 1024

// tree compiles the spec's tree.
func (c *compiler) tree() {
	switch n := len(c.spec.Domain); {
	case n == 0:
		c.fault("domain", "no domain", "a domain, as Envoy's rate limit filter names it", "")
	case n > maxDomain:
		c.fault("domain", "a domain of "+number(n)+" bytes", "at most "+number(maxDomain), "")
	}
	if len(c.spec.Tree) == 0 {
		c.warn("descriptors", "none", "at least one descriptor, else nothing is limited", "")
	}
	t := &tree{bare: c.leafRule(&NodeSpec{}, "")}
	c.policy.tree = t
	b := treeBuilder{compiler: c, tree: t, named: map[string]bool{}, wanted: map[string]string{}}
	b.level(&t.root, nil, c.spec.Tree, "")
	b.dangling()
}

// A treeBuilder adds the nodes of one tree.
type treeBuilder struct {
	*compiler
	tree   *tree
	named  map[string]bool   // rules, by name
	wanted map[string]string // names that a rule replaces: where first
}

// level adds nodes to l, which follow those of way.
func (b *treeBuilder) level(l *level, way []*node, nodes []NodeSpec, path string) {
	first := map[descriptors.Entry]int{}
	for i := range nodes {
		s, at := &nodes[i], place(under(path, "descriptors"), i)
		if s.Key == "" {
			b.fault(at+".key", "no key", "the key of an entry, such as generic_key", "")
			continue
		}
		e := descriptors.Entry{Key: s.Key, Value: s.Value}
		if j, ok := first[e]; ok {
			where := nodes[j].Place
			if where == "" {
				where = place(under(path, "descriptors"), j)
			}
			b.fault(at, "a second "+quote(s.way())+" on a level, the first being at "+where, "one of each key and value", "put what both say into one")
			continue
		}
		first[e] = i
		b.node(l, way, s, at)
	}
}

func under(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}

// node adds s and what is under it to l.
func (b *treeBuilder) node(l *level, way []*node, s *NodeSpec, at string) {
	n := &node{key: s.Key, value: s.Value, share: s.Share, shown: s.ValueToMetric}
	switch {
	case strings.Contains(s.Key+s.Value, "*"):
		n.glob = newGlob(s.way())
		l.wild = append(l.wild, n)
	case s.Value != "":
		if l.exact == nil {
			l.exact = map[descriptors.Entry]*node{}
		}
		l.exact[descriptors.Entry{Key: s.Key, Value: s.Value}] = n
	default:
		if l.any == nil {
			l.any = map[string]*node{}
		}
		l.any[s.Key] = n
	}
	if s.Share && !n.isWild() {
		b.fault(at+".share_threshold", "share_threshold with "+quote(s.way()), "a * in the value, whose texts can share", "")
	}
	way = append(slices.Clone(way), n)
	b.leaf(n, way, s, at)
	b.level(&n.next, way, s.Children, at)
}

func (n *node) isWild() bool { return strings.Contains(n.key+n.value, "*") }

// leaf makes the rule of s, if it is one.
func (b *treeBuilder) leaf(n *node, way []*node, s *NodeSpec, at string) {
	b.replaces(s, at)
	if !s.charges() {
		b.idle(s, at)
		return
	}
	name := make([]string, len(way))
	for i, n := range way {
		name[i] = joined(n.key, n.value)
	}
	l := &leaf{
		Rule: b.leafRule(s, strings.Join(name, ".")), nodes: way, detailed: s.Detailed,
		first: max(slices.IndexFunc(way, (*node).differs), 0),
	}
	l.dynamic = s.Detailed || slices.ContainsFunc(way, func(n *node) bool { return n.shown })
	if !s.Unlimited {
		l.limits = b.treeLimits(at, s.Limits)
	}
	n.leaf = l
	b.tree.leaves = append(b.tree.leaves, l)
}

// differs says that n is for entries of several buckets.
func (n *node) differs() bool { return !n.share && (n.value == "" || n.isWild()) }

func (c *compiler) leafRule(s *NodeSpec, name string) *Rule {
	return &Rule{
		Domain: c.spec.Domain, Name: name, Descriptor: true, Shadow: s.Shadow, OnError: c.spec.OnError,
		Deny: Deny{Status: 429}, Headers: c.shown,
		Leaf: &Leaf{Quota: s.Quota, Replaces: slices.Clone(s.Replaces), Metadata: s.Metadata, names: s.names()},
	}
}

// treeLimits makes limits ready, one by one so that all faults are found.
func (b *treeBuilder) treeLimits(at string, limits []bucket.Limit) *bucket.Limits {
	at += ".rate_limit"
	for i, l := range limits {
		path := at
		if len(limits) > 1 {
			path = place(at, i)
		}
		if _, err := bucket.NewLimits(l); err != nil {
			b.limit(path, err)
		} else if l.Tokens == 0 {
			b.warn(path+".requests_per_unit", "0 requests a unit", "at least 1: this denies every request", "")
		}
	}
	all, err := bucket.NewLimits(limits...)
	if err != nil && (len(limits) == 0 || len(limits) > bucket.MaxLimits) {
		b.limit(at, err)
	}
	return all
}

// replaces checks what s replaces, and notes its names.
func (b *treeBuilder) replaces(s *NodeSpec, at string) {
	names := s.names()
	for _, name := range names {
		b.named[name] = true
	}
	for i, name := range s.Replaces {
		path := place(at+".rate_limit.replaces", i)
		switch {
		case name == "":
			b.fault(path, "no name", "the name of another rule", "")
		case slices.Contains(names, name):
			b.fault(path, quote(name)+", which is this rule's own name", "the name of another rule", "")
		case b.wanted[name] == "":
			b.wanted[name] = path
		}
	}
}

// dangling warns of names that no rule has.
func (b *treeBuilder) dangling() {
	for _, name := range slices.Sorted(maps.Keys(b.wanted)) {
		if !b.named[name] {
			b.warn(b.wanted[name], quote(name)+", a name that no rule has", "the name of a rule of this domain", "")
		}
	}
}

// idle warns of what says something of a rule where there is none.
func (b *treeBuilder) idle(s *NodeSpec, at string) {
	for _, f := range []struct {
		name string
		set  bool
	}{{"shadow_mode", s.Shadow}, {"quota_mode", s.Quota}, {"detailed_metric", s.Detailed}, {"metadata", s.Metadata != nil}} {
		if f.set {
			b.warn(at+"."+f.name, f.name+" without rate_limit", "a rate_limit beside it: without one nothing is counted here", "")
		}
	}
}
