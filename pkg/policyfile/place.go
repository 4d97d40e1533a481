package policyfile

import "strings"

// A place is a line and a column of a file, from 1.
type place struct{ line, column int }

// places are where a file's fields are, by their paths; "" is the file's root.
type places map[string]place

// nearest returns the place of the field at path or, where the file does not
// have it, of what it would be in.
func (ps places) nearest(path string) place {
	for {
		if at, ok := ps[path]; ok || path == "" {
			return at
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
}

// follows says that a fault at path may follow from what is known to be wrong,
// because one of the two fields lies in the other.
func (d *decoder) follows(path string) bool {
	for _, b := range d.broken {
		if within(path, b) || within(b, path) {
			return true
		}
	}
	return false
}

// within says that the field at inner is that at outer, or lies in it.
func within(inner, outer string) bool {
	rest, ok := strings.CutPrefix(inner, outer)
	return ok && (rest == "" || outer == "" || rest[0] == '.' || rest[0] == '[')
}
