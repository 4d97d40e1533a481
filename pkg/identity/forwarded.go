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
// An element that has none or several is garbage.
func parseElement(s string) netip.Addr {
	var client string
	for more := true; more; {
		var pair string
		pair, s, more = cutPair(s)
		name, value, _ := strings.Cut(pair, "=")
		if !strings.EqualFold(trim(name), "for") {
			continue
		}
		if client != "" {
			return netip.Addr{}
		}
		client = trim(value)
	}
	return parseNode(client)
}

// cutPair splits s at its first semicolon outside of a quoted string.
func cutPair(s string) (pair, rest string, more bool) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case quoted && s[i] == '\\':
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == ';' && !quoted:
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

// parseNode reads a node: an address, perhaps quoted, perhaps with a port that
// may be a made-up name.
func parseNode(s string) netip.Addr {
	if inner, found := strings.CutPrefix(s, `"`); found {
		var closed bool
		if s, closed = strings.CutSuffix(inner, `"`); !closed {
			return netip.Addr{}
		}
	}
	if host, name, found := strings.Cut(s, ":_"); found && isToken(name) {
		s = host
	}
	return parseAddr(s)
}
