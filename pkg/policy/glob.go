package policy

import (
	"bytes"
	"strings"
)

// A glob is text in which each * stands for any text, or for none.
type glob struct {
	before, after []byte // the first *, and the last
	between       [][]byte
}

func newGlob(text string) glob {
	parts := strings.Split(text, "*")
	g := glob{before: []byte(parts[0]), after: []byte(parts[len(parts)-1])}
	for _, p := range parts[1 : len(parts)-1] {
		g.between = append(g.between, []byte(p))
	}
	return g
}

// fits says that g, which has a *, can stand for text. Each part is found at
// its first place, so that no text takes longer than once through for each.
func (g *glob) fits(text []byte) bool {
	rest, ok := bytes.CutPrefix(text, g.before)
	if !ok {
		return false
	}
	if rest, ok = bytes.CutSuffix(rest, g.after); !ok {
		return false
	}
	for _, part := range g.between {
		if _, rest, ok = bytes.Cut(rest, part); !ok {
			return false
		}
	}
	return true
}
