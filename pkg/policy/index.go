package policy

import (
	"regexp"
	"slices"
	"strings"
)

// A pathIndex finds which of many patterns match a path. Its time grows with
// the segments of the patterns that match so far, and with the number of
// regular expressions, not with the number of patterns.
type pathIndex struct {
	root  pathNode
	all   []int32 // of no pattern: they match every path
	regex []regexEntry
}

type regexEntry struct {
	regex *regexp.Regexp
	id    int32
}

// A pathNode is what may follow some segments of a path.
type pathNode struct {
	next  map[string]*pathNode
	any   *pathNode // after a segment that {id} stands for
	exact []int32   // the path ends here
	under []int32   // the path ends here or goes on
}

// add adds p under id. Each id is added once.
func (x *pathIndex) add(p pattern, id int32) {
	if p.regex != nil {
		x.regex = append(x.regex, regexEntry{p.regex, id})
		return
	}
	n := &x.root
	for _, s := range p.segments {
		n = n.child(s)
	}
	if p.under {
		n.under = append(n.under, id)
		return
	}
	n.exact = append(n.exact, id)
}

func (n *pathNode) child(segment string) *pathNode {
	if segment == anySegment {
		if n.any == nil {
			n.any = &pathNode{}
		}
		return n.any
	}
	if n.next == nil {
		n.next = make(map[string]*pathNode)
	}
	if n.next[segment] == nil {
		n.next[segment] = &pathNode{}
	}
	return n.next[segment]
}

// find appends to found the ids that match path, a normal one, in their order.
func (x *pathIndex) find(path string, found []int32) []int32 {
	found = append(found, x.all...)
	for i := range x.regex {
		if x.regex[i].regex.MatchString(path) {
			found = append(found, x.regex[i].id)
		}
	}
	if rest, ok := strings.CutPrefix(path, "/"); ok {
		found = x.root.find(rest, true, found)
	}
	slices.Sort(found)
	return found
}

func (n *pathNode) find(rest string, more bool, found []int32) []int32 {
	found = append(found, n.under...)
	if !more {
		return append(found, n.exact...)
	}
	if n.next == nil && n.any == nil {
		return found
	}
	segment, rest, more := strings.Cut(rest, "/")
	if next := n.next[segment]; next != nil {
		found = next.find(rest, more, found)
	}
	if n.any != nil && segment != "" {
		found = n.any.find(rest, more, found)
	}
	return found
}
