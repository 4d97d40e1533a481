package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/descriptors"
)

// A tree matches descriptors level by level, as envoyproxy/ratelimit does: at
// each level the node of just this key and value, else the first whose * fits,
// else that of the key. It never goes back: where the rest does not match,
// nothing does.
type tree struct {
	root   level
	leaves []*leaf // in the file's order
	// bare is the rule of a limit that comes with a descriptor which none of
	// the leaves is for.
	bare *Rule
}

// A level is what may follow some entries.
type level struct {
	exact map[descriptors.Entry]*node
	wild  []*node
	any   map[string]*node // by key
}

// A node is one entry that may come, and what may follow.
type node struct {
	key, value string
	glob       glob
	next       level
	share      bool // the bucket is of all that the glob fits
	shown      bool // the value is in the way that metrics show
	leaf       *leaf
}

// A leaf is what holds for descriptors that end at a node.
type leaf struct {
	*Rule
	limits *bucket.Limits // nil: none
	// first is the entry whose value comes first in a key: one that differs
	// from bucket to bucket, since it decides where a cluster keeps the bucket.
	first    int
	detailed bool
	dynamic  bool // Way is not always the name
	nodes    []*node
}

// find returns the node that e leads to, nil for none.
func (l *level) find(e descriptors.Entry) *node {
	if n := l.exact[e]; n != nil {
		return n
	}
	if len(l.wild) > 0 {
		var space [128]byte
		text := append(append(append(space[:0], e.Key...), '_'), e.Value...)
		for _, n := range l.wild {
			if n.glob.fits(text) {
				return n
			}
		}
	}
	return l.any[e.Key]
}

// find returns the leaf for d, nil for none.
func (t *tree) find(d descriptors.Descriptor) *leaf {
	at := &t.root
	for i, e := range d {
		n := at.find(e)
		if n == nil {
			return nil
		}
		if i == len(d)-1 {
			return n.leaf
		}
		at = &n.next
	}
	return nil
}

func (t *tree) forDescriptor(p *Policy, d descriptors.Descriptor) []Applied {
	l := t.find(d)
	if l == nil {
		return nil
	}
	return []Applied{{
		Rule: l.Rule,
		Charge: bucket.Charge{
			Key: l.keyOf(p, d, ""), Limits: l.limits, Cost: 1, Shadow: l.Shadow,
		},
		Unlimited: l.limits == nil,
		Quota:     l.Leaf.Quota,
		Way:       l.way(d),
	}}
}

// keyOf returns the key of the bucket that l has for d. Every entry is in it,
// whatever of it the tree says, so that a bucket stays the same when rules
// change around it; but not the limits. apart sets the bucket apart from that.
func (l *leaf) keyOf(p *Policy, d descriptors.Descriptor, apart string) string {
	var space [8]descriptors.Value
	values := append(space[:0], l.part(d, l.first))
	for i := range d {
		if i != l.first {
			values = append(values, l.part(d, i))
		}
	}
	return p.keyer.Key(p.Domain, number(l.first)+apart, values...)
}

// part is what entry i of d is in a key.
func (l *leaf) part(d descriptors.Descriptor, i int) descriptors.Value {
	if i < len(l.nodes) && l.nodes[i].share {
		return descriptors.Value{Kind: l.nodes[i].key, Text: l.nodes[i].value}
	}
	return descriptors.Value{Kind: d[i].Key, Text: d[i].Value}
}

// way is the way to l that metrics show for d.
func (l *leaf) way(d descriptors.Descriptor) string {
	if !l.dynamic {
		return l.Name
	}
	var b strings.Builder
	for i, n := range l.nodes {
		if i > 0 {
			b.WriteByte('.')
		}
		switch v := l.part(d, i); {
		case l.detailed:
			b.WriteString(joined(v.Kind, v.Text))
		case n.shown && !n.share:
			b.WriteString(joined(n.key, d[i].Value))
		default:
			b.WriteString(joined(n.key, n.value))
		}
	}
	return b.String()
}

func joined(key, value string) string {
	if value == "" {
		return key
	}
	return key + "_" + value
}

// ForBrought returns what applies to d where the request brought a limit with
// it, of tokens per period. In a tree it takes the place of all that is said
// there: it is aligned, as the tree's own are, and needs no rule; the bucket is
// that of the rule with the same period. Otherwise it is greedy and takes the
// place of the limits of the rules that apply to d, under the same keys: shadow
// and debt stay. With a limit that cannot be counted (no period, or one beyond
// 100 years) it is ForDescriptor.
func (p *Policy) ForBrought(d descriptors.Descriptor, tokens int64, per time.Duration) []Applied {
	limit := bucket.Limit{Tokens: tokens, Per: per}
	if p.tree != nil {
		limit.Refill = bucket.Aligned
	}
	limits, err := bucket.NewLimits(limit)
	if err != nil {
		return p.ForDescriptor(d)
	}
	if p.tree != nil && len(d) > 0 {
		return p.tree.forBrought(p, d, limits)
	}
	applied := p.ForDescriptor(d)
	for i := range applied {
		a := &applied[i]
		a.Limits, a.Unlimited, a.Brought = instead(a.Limits, limits), false, true
	}
	return applied
}

// instead returns brought for where own hold, with their debt, as far as that
// can be counted.
func instead(own, brought *bucket.Limits) *bucket.Limits {
	if own == nil || !own.Debt() {
		return brought
	}
	if limits, err := own.Instead(brought.At(0)); err == nil {
		return limits
	}
	return brought
}

func (t *tree) forBrought(p *Policy, d descriptors.Descriptor, limits *bucket.Limits) []Applied {
	l := t.find(d)
	if l == nil {
		l = &leaf{Rule: t.bare}
	}
	apart := ""
	if per := limits.At(0).Per; l.limits == nil || !hasPeriod(l.limits, per) {
		apart = "/" + per.String()
	}
	return []Applied{{
		Rule:    l.Rule,
		Charge:  bucket.Charge{Key: l.keyOf(p, d, apart), Limits: limits, Cost: 1},
		Brought: true,
		Way:     l.Name,
	}}
}

func hasPeriod(limits *bucket.Limits, per time.Duration) bool {
	for i := range limits.Len() {
		if limits.At(i).Per == per {
			return true
		}
	}
	return false
}

// Replace returns applied without the rules that others in it replace. ends[i]
// is where the rules of descriptor i end, and is moved along. A rule that is
// replaced replaces others all the same.
func Replace(applied []Applied, ends []int) []Applied {
	var names []string
	for i := range applied {
		if a := &applied[i]; a.Rule.Leaf != nil && !a.Brought {
			names = append(names, a.Rule.Leaf.Replaces...)
		}
	}
	if names == nil {
		return applied
	}
	kept, from := applied[:0], 0
	for i, to := range ends {
		for ; from < to; from++ {
			if !applied[from].replacedBy(names) {
				kept = append(kept, applied[from])
			}
		}
		ends[i] = len(kept)
	}
	return kept
}

func (a *Applied) replacedBy(names []string) bool {
	if a.Rule.Leaf == nil || a.Brought {
		return false
	}
	return slices.ContainsFunc(a.Rule.Leaf.names, func(n string) bool { return slices.Contains(names, n) })
}

// ReplacedBy says that b, which applies to the same request, takes the place of
// a.
func (a *Applied) ReplacedBy(b *Applied) bool {
	return b.Rule.Leaf != nil && !b.Brought && a.replacedBy(b.Rule.Leaf.Replaces)
}

// IsTree says that p is of a file in envoyproxy/ratelimit's format.
func (p *Policy) IsTree() bool { return p.tree != nil }

// Leaves returns a line for each limit of a tree, for people to read.
func (p *Policy) Leaves() []string {
	if p.tree == nil {
		return nil
	}
	lines := make([]string, len(p.tree.leaves))
	for i, l := range p.tree.leaves {
		lines[i] = p.Domain + "." + l.Name + ": " + l.describe()
	}
	return lines
}

func (l *leaf) describe() string {
	if l.limits == nil {
		return "unlimited"
	}
	var b strings.Builder
	for i := range l.limits.Len() {
		limit := l.limits.At(i)
		fmt.Fprintf(&b, "unit=%s requests_per_unit=%d, ", unitName(limit.Per), limit.Tokens)
		if limit.Burst != limit.Tokens {
			fmt.Fprintf(&b, "burst=%d, ", limit.Burst)
		}
		if limit.Refill != bucket.Aligned {
			fmt.Fprintf(&b, "refill=%v, ", limit.Refill)
		}
	}
	fmt.Fprintf(&b, "shadow_mode: %t, quota_mode: %t", l.Shadow, l.Leaf.Quota)
	return b.String()
}

// unitName is a period as one unit, or as it is.
func unitName(per time.Duration) string {
	if name := unitNames[per]; name != "" {
		return name
	}
	return per.String()
}

var unitNames = map[time.Duration]string{
	time.Second: "SECOND", time.Minute: "MINUTE", time.Hour: "HOUR", bucket.Day.Nominal(): "DAY",
	bucket.Week.Nominal(): "WEEK", bucket.Month.Nominal(): "MONTH", bucket.Year.Nominal(): "YEAR",
}
