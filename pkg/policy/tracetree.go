package policy

import "github.com/sluice-mesh/sluice/pkg/descriptors"

// trace says of each leaf why it is for d or not.
func (t *tree) trace(d descriptors.Descriptor) []RuleTrace {
	found := t.find(d)
	traces := make([]RuleTrace, len(t.leaves))
	for i, l := range t.leaves {
		traces[i] = RuleTrace{Rule: l.Rule, Override: -1}
		if l.trace(&traces[i], d); len(d) == len(l.nodes) && traces[i].Verdict == Applies && l != found {
			traces[i].Verdict = Mismatch
			traces[i].Conditions = append(traces[i].Conditions, Condition{
				Field: "descriptors", Want: "no closer match on a level", Found: t.closer(d, l),
			})
		}
	}
	return traces
}

// trace says whether l's entries are those of d, looked at alone.
func (l *leaf) trace(t *RuleTrace, d descriptors.Descriptor) {
	if len(d) != len(l.nodes) {
		t.Conditions = []Condition{{Field: "descriptors", Want: counted(len(l.nodes)), Found: counted(len(d))}}
		return
	}
	for i, n := range l.nodes {
		c := Condition{
			Field: place("entries", i), Want: joined(n.key, n.value), Found: d[i].Key + "=" + d[i].Value,
			Holds: n.fits(d[i]),
		}
		t.Conditions = append(t.Conditions, c)
		if !c.Holds {
			return
		}
	}
	t.Verdict = Applies
	for i := range d {
		v := l.part(d, i)
		t.Values = append(t.Values, Value{Name: v.Kind, Text: v.Text})
	}
}

// fits says that n alone is for e.
func (n *node) fits(e descriptors.Entry) bool {
	switch {
	case n.isWild():
		return n.glob.fits([]byte(e.Key + "_" + e.Value))
	case n.value == "":
		return n.key == e.Key
	default:
		return n.key == e.Key && n.value == e.Value
	}
}

// closer returns the node that d goes to instead of one of l's.
func (t *tree) closer(d descriptors.Descriptor, l *leaf) string {
	at := &t.root
	for i, n := range l.nodes {
		found := at.find(d[i])
		if found != n {
			return joined(found.key, found.value) + " on level " + number(i+1)
		}
		at = &found.next
	}
	return "none"
}

// callers adds what leaves tell their callers apart by.
func (t *tree) callers(by map[*Rule]string) {
	for _, l := range t.leaves {
		if l.nodes[l.first].differs() {
			by[l.Rule] = l.nodes[l.first].key
		}
	}
}
