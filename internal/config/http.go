package config

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// dialects are what HTTPDialect may be.
var dialects = []string{"envoy", "istio", "traefik", "caddy", "nginx"}

func addHTTPFlags(fs *pflag.FlagSet) {
	d := Default()
	fs.String("http-addr", d.HTTPAddr, "answer checks over HTTP at this `ADDRESS`: host:port or unix:path (default nowhere)")
	fs.String("http-dialect", d.HTTPDialect, "the `PROXY` that asks over HTTP: "+strings.Join(dialects, ", "))
	fs.StringSlice("http-callers", d.HTTPCallers, "answer checks over HTTP that come from these `NETWORKS`, with commas between (default loopback)")
	fs.String("http-peer-header", d.HTTPPeerHeader, "the `HEADER` in which the proxy says who connects to it, and which it sets whatever a client sends (default the dialect's)")
	fs.String("http-path-prefix", d.HTTPPathPrefix, "take off this `PATH`, which Envoy and Istio put before a request's own (path_prefix, pathPrefix)")
	fs.Int("http-deny-status", d.HTTPDenyStatus, "deny with this `STATUS` over HTTP (default the policy's, as far as the proxy lets it pass; 403 for nginx)")
	fs.Int("http-max-header-size", d.HTTPMaxHeaderSize, "refuse a check over HTTP with headers of more `BYTES`")
}

// http looks at what is said of checks over HTTP, also where there are none:
// who sets more than the address means them to come.
func (c *checker) http() {
	s := c.s
	if s.HTTPAddr != "" {
		c.address("http-addr", s.HTTPAddr)
		c.apart("http-addr", s.HTTPAddr, "grpc-addr", s.GRPCAddr)
		c.apart("http-addr", s.HTTPAddr, "admin-addr", s.AdminAddr)
	}
	s.HTTPDialect = strings.ToLower(s.HTTPDialect)
	c.want(slices.Contains(dialects, s.HTTPDialect), "http-dialect", strconv.Quote(s.HTTPDialect), "one of "+strings.Join(dialects, ", "))
	for _, text := range s.HTTPCallers {
		_, err := network(text)
		c.want(err == nil, "http-callers", strconv.Quote(text), "a network such as 10.0.0.0/8")
	}
	odd := func(r rune) bool {
		return r != '-' && r != '_' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
	}
	c.want(!strings.ContainsFunc(s.HTTPPeerHeader, odd), "http-peer-header", strconv.Quote(s.HTTPPeerHeader), "a header's name")
	c.want(s.HTTPMaxHeaderSize >= 1024, "http-max-header-size", strconv.Itoa(s.HTTPMaxHeaderSize), "1024 or more")
	c.httpPrefix()
	c.httpDenyStatus()
}

func (c *checker) httpPrefix() {
	prefix := c.s.HTTPPathPrefix
	if prefix == "" {
		return
	}
	c.want(prefix[0] == '/', "http-path-prefix", strconv.Quote(prefix), "a path that begins with /")
	prefixed := c.s.HTTPDialect == "envoy" || c.s.HTTPDialect == "istio"
	c.want(prefixed, "http-path-prefix", strconv.Quote(prefix), "none, since "+c.s.HTTPDialect+" says the path in a header")
}

// httpDenyStatus wants a status that the proxy does not take for a failure of
// the check.
func (c *checker) httpDenyStatus() {
	status := c.s.HTTPDenyStatus
	switch {
	case status == 0:
	case c.s.HTTPDialect == "nginx":
		c.want(status == 401 || status == 403, "http-deny-status", strconv.Itoa(status), "401 or 403, since nginx makes 500 of any other")
	default:
		c.want(status >= 400 && status <= 499, "http-deny-status", strconv.Itoa(status), "400 to 499")
	}
}

// Callers returns HTTPCallers as networks.
func (s Settings) Callers() []netip.Prefix {
	var all []netip.Prefix
	for _, text := range s.HTTPCallers {
		if p, err := network(text); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// network reads a network, or an address as a network of one.
func network(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	return netip.ParsePrefix(text)
}
