package identity

import (
	"net/netip"
	"strings"
)

// lastComma returns the place of the last comma in s outside of a quoted
// string, or -1. It reads from the right, so that a quote which somebody left
// open stays within what he wrote himself.
func lastComma(s string) int {
	quoted := false
	for i := len(s) - 1; i >= 0; i-- {
		switch {
		case s[i] == '"' && !escaped(s, i):
			quoted = !quoted
		case s[i] == ',' && !quoted:
			return i
		}
	}
	return -1
}

// escaped reports whether a backslash makes s[i] a plain byte.
func escaped(s string, i int) bool {
	n := 0
	for n < i && s[i-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// parseElement reads the for parameter of one element of a Forwarded header.
// An element that is not well formed, or has none or several, is garbage.
func parseElement(s string) netip.Addr {
	node, nodes := "", 0
	for s = trim(s); s != ""; {
		p, rest, ok := cutParameter(s)
		if !ok {
			return netip.Addr{}
		}
		if strings.EqualFold(p.name, "for") {
			node = p.value
			nodes++
		}
		s = rest
	}
	if nodes != 1 {
		return netip.Addr{}
	}
	return parseNode(node)
}

type parameter struct{ name, value string }

// cutParameter takes the first parameter and its semicolon off s.
func cutParameter(s string) (p parameter, rest string, ok bool) {
	p.name, rest, _ = strings.Cut(s, "=")
	p.name = trim(p.name)
	if p.value, rest, ok = cutValue(rest); !ok || !isToken(p.name) {
		return p, "", false
	}
	rest = trim(rest)
	if rest != "" && rest[0] != ';' {
		return p, "", false
	}
	return p, strings.TrimPrefix(rest, ";"), true
}

// cutValue takes a value off s: a quoted string, whose quotes it drops, or
// what is before the next semicolon.
func cutValue(s string) (value, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		end := strings.IndexByte(s, ';')
		if end < 0 {
			end = len(s)
		}
		return trim(s[:end]), s[end:], !strings.Contains(s[:end], `"`)
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return s[1:i], s[i+1:], true
		}
	}
	return "", "", false
}

// parseNode reads a node: an address, perhaps with a port, which may be a
// made-up name.
func parseNode(s string) netip.Addr {
	if host, name, found := strings.Cut(s, ":_"); found && isToken(name) {
		s = host
	}
	return parseAddr(s)
}
