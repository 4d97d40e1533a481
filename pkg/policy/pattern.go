package policy

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// A pattern is a compiled path pattern: /a/b, /a/*, /a/{id} or ~RE2.
type pattern struct {
	regex    *regexp.Regexp
	segments []string // anySegment for {id}
	under    bool     // everything below as well
}

// anySegment stands for {id}. No segment of a normal path holds a slash.
const anySegment = "/"

// parsePattern reads text. The fault that it returns has no path yet.
func parsePattern(text string) (pattern, *Fault) {
	if expr, ok := strings.CutPrefix(text, "~"); ok {
		return parseRegex(expr)
	}
	if !strings.HasPrefix(text, "/") {
		return pattern{}, &Fault{Found: quote(text), Want: "a path such as /a/b, /a/* or /a/{id}, or ~ and a regular expression"}
	}
	var p pattern
	segments := strings.Split(text[1:], "/")
	if last := len(segments) - 1; segments[last] == "*" {
		p.under, segments = true, segments[:last]
	}
	literal := slices.Clone(segments)
	for i, s := range segments {
		switch {
		case isPlaceholder(s):
			segments[i], literal[i] = anySegment, "x"
		case strings.ContainsAny(s, "*{}"):
			return pattern{}, &Fault{Found: quote(text), Want: "* only as the last segment and {name} as a whole one", Do: "use ~ and a regular expression"}
		}
	}
	p.segments = segments
	return p, checkLiteral(text, "/"+strings.Join(literal, "/"))
}

func parseRegex(expr string) (pattern, *Fault) {
	if expr == "" {
		return pattern{}, &Fault{Found: `"~"`, Want: "a regular expression after ~"}
	}
	regex, err := regexp.Compile(expr)
	if err != nil {
		return pattern{}, &Fault{Found: quote("~" + expr), Want: "a regular expression in RE2's syntax", Do: "mend it: " + err.Error()}
	}
	return pattern{regex: regex}, nil
}

// anchored says that regex only matches from the start of a path, as far as
// that is simple to see.
func anchored(regex *regexp.Regexp) bool {
	tree, err := syntax.Parse(regex.String(), syntax.Perl)
	if err != nil {
		return false
	}
	program, err := syntax.Compile(tree.Simplify())
	return err == nil && program.StartCond()&syntax.EmptyBeginText != 0
}

func isPlaceholder(s string) bool {
	return len(s) > 2 && s[0] == '{' && s[len(s)-1] == '}' && !strings.ContainsAny(s[1:len(s)-1], "{}*")
}

// checkLiteral refuses a pattern that no normal path can match.
func checkLiteral(text, literal string) *Fault {
	normal := NormalPath(literal)
	if normal == literal {
		return nil
	}
	return &Fault{Found: quote(text), Want: "a path in its normal form, since others never match: here " + quote(normal)}
}

// covers says that p matches every path that q does, as far as that is simple
// to see.
func (p pattern) covers(q pattern) bool {
	if p.regex != nil || q.regex != nil {
		return p.regex != nil && q.regex != nil && p.regex.String() == q.regex.String()
	}
	if len(q.segments) < len(p.segments) || !p.under && (q.under || len(q.segments) > len(p.segments)) {
		return false
	}
	for i, s := range p.segments {
		if s != q.segments[i] && (s != anySegment || q.segments[i] == "") {
			return false
		}
	}
	return true
}
