package identity

import (
	"net/netip"
	"strconv"
	"strings"
)

// A chain is what is left of a forwarded header, to be read from the right.
// Read so, no text can reach over into what was appended after it.
type chain struct {
	rest     string
	elements bool // rest has the elements of a Forwarded header, not bare addresses
}

// last takes the right-most entry off the chain. An empty entry at the very
// left is not told from the end, since neither is an address.
func (c *chain) last() (entry string, ok bool) {
	if c.rest == "" {
		return "", false
	}
	i := c.comma()
	entry = c.rest[i+1:]
	c.rest = c.rest[:max(i, 0)]
	return entry, true
}

// comma returns the place of the last comma that separates entries, or -1.
func (c *chain) comma() int {
	if c.elements {
		return lastComma(c.rest)
	}
	return strings.LastIndexByte(c.rest, ',')
}

// parse reads an entry. The zero Addr is garbage.
func (c *chain) parse(entry string) netip.Addr {
	if c.elements {
		return parseElement(entry)
	}
	return parseAddr(entry)
}

// ParseAddr reads an address as proxies write it: with or without a port,
// brackets and spaces around it. It comes unmapped and without a zone.
func ParseAddr(s string) (a netip.Addr, ok bool) {
	a = parseAddr(s)
	return a, a.IsValid()
}

// parseAddr is ParseAddr with the zero Addr for garbage.
func parseAddr(s string) netip.Addr {
	host, ok := cutPort(trim(s))
	if !ok {
		return netip.Addr{}
	}
	host, ok = cutZone(host)
	if !ok {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap()
}

// cutPort takes the port and the brackets off s.
func cutPort(s string) (host string, ok bool) {
	if inner, found := strings.CutPrefix(s, "["); found {
		host, port, closed := strings.Cut(inner, "]")
		return host, closed && strings.Contains(host, ":") && (port == "" || port[0] == ':' && isPort(port[1:]))
	}
	host, port, found := strings.Cut(s, ":")
	if !found || strings.Contains(port, ":") {
		return s, true // no port, or an IPv6 address without brackets
	}
	return host, isPort(port)
}

func isPort(s string) bool {
	_, err := strconv.ParseUint(s, 10, 16)
	return err == nil
}

// cutZone takes the zone off an IPv6 address.
func cutZone(s string) (host string, ok bool) {
	host, zone, found := strings.Cut(s, "%")
	if !found {
		return s, true
	}
	return host, strings.Contains(host, ":") && isToken(zone)
}

// trim takes the spaces and tabs off both ends of s.
func trim(s string) string { return strings.Trim(s, " \t") }

// isToken reports whether s is a token of HTTP, and not empty.
func isToken(s string) bool {
	for i := range len(s) {
		if strings.IndexByte(tokenBytes, s[i]) < 0 {
			return false
		}
	}
	return s != ""
}

const tokenBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.!#$%&'*+^`|~"
