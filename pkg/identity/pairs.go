package identity

import (
	"net/url"
	"strings"
)

// findCookie returns the value of the cookie name in a Cookie header, "" if it
// is not there just once. Proxies join the lines of this header by a comma,
// which is why a cookie may begin after one.
func findCookie(header, name string) string {
	value, _ := cookies(header).only(func(s string) bool { return isCookie(s, name) })
	return unquote(trim(value))
}

func cookies(header string) pairs { return pairs{rest: header, end: ';', inner: ','} }

func isCookie(s, name string) bool { return trim(s) == name }

// unquote takes the quotes off a cookie's value: servers read it the same with
// and without.
func unquote(s string) string {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		return s[1 : len(s)-1]
	}
	return s
}

// findQuery returns the decoded value of the parameter name in the query of a
// request's target, "" if it is not there just once or cannot be decoded. Some
// servers take a semicolon for an ampersand, which is why a parameter may begin
// after one.
func findQuery(target, name string) string {
	value, _ := parameters(target).only(func(s string) bool { return isParameter(s, name) })
	value, err := url.QueryUnescape(value)
	if err != nil {
		return ""
	}
	return value
}

func parameters(target string) pairs {
	target, _, _ = strings.Cut(target, "#")
	_, query, _ := strings.Cut(target, "?")
	return pairs{rest: query, end: '&', inner: ';'}
}

func isParameter(s, name string) bool {
	decoded, err := url.QueryUnescape(s)
	return err == nil && decoded == name
}

// pairs are name=value pairs. One begins after each end and each inner; its
// value lasts to the next end.
type pairs struct {
	rest       string
	end, inner byte
}

// only returns the value of the pair with the name that is wanted, if there is
// just one.
func (p pairs) only(wanted func(name string) bool) (value string, ok bool) {
	for p.rest != "" {
		pair := p.rest
		name, next := p.cut()
		p.rest = next
		if !wanted(name) {
			continue
		}
		if ok {
			return "", false
		}
		value, ok = p.value(pair), true
	}
	return value, ok
}

// cut returns the first pair's name, and what follows the pair.
func (p pairs) cut() (name, next string) {
	pair := p.rest
	for i := range len(pair) {
		if pair[i] == p.end || pair[i] == p.inner {
			pair, next = pair[:i], pair[i+1:]
			break
		}
	}
	name, _, _ = strings.Cut(pair, "=")
	return name, next
}

// value returns the value of the pair that s begins with.
func (p pairs) value(s string) string {
	if i := strings.IndexByte(s, p.end); i >= 0 {
		s = s[:i]
	}
	_, value, _ := strings.Cut(s, "=")
	return value
}
