package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A SAN is a pattern of the names in certificates: of URIs such as
// spiffe://cluster.local/ns/edge/sa/*, where it has ://, else of DNS names and
// addresses. A * stands for at least one letter, and for none that divides
// names: / in a URI, . in the others; ** stands for those too.
type SAN struct {
	uri     bool
	pattern *regexp.Regexp
}

// ParseSAN reads a pattern.
func ParseSAN(text string) (SAN, error) {
	if text == "" || strings.ContainsAny(text, " \t\r\n") {
		return SAN{}, fmt.Errorf("found %s, want a name such as spiffe://cluster.local/ns/edge/sa/* or *.example.com", strconv.Quote(text))
	}
	s := SAN{uri: strings.Contains(text, "://")}
	flags, one := "(?is)", `[^.]+` // DNS knows no case
	if s.uri {
		flags, one = "(?s)", `[^/]+`
	}
	quoted := regexp.QuoteMeta(text)
	quoted = strings.ReplaceAll(quoted, `\*\*`, ".+")
	quoted = strings.ReplaceAll(quoted, `\*`, one)
	var err error
	s.pattern, err = regexp.Compile(flags + `\A` + quoted + `\z`)
	return s, err
}

// Matches says whether one of c's names is as s says. The subject's name is
// none.
func (s SAN) Matches(c *x509.Certificate) bool {
	for _, name := range s.names(c) {
		if s.pattern.MatchString(name) {
			return true
		}
	}
	return false
}

func (s SAN) names(c *x509.Certificate) []string {
	var names []string
	if s.uri {
		for _, u := range c.URIs {
			names = append(names, u.String())
		}
		return names
	}
	names = append(names, c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

type sans []SAN

// parseSANs reads patterns. The error joins all that are none.
func parseSANs(setting string, texts []string) (sans, error) {
	var all sans
	var errs []error
	for _, text := range texts {
		s, err := ParseSAN(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("setting %s: %w", setting, err))
		}
		all = append(all, s)
	}
	return all, errors.Join(errs...)
}

// errSAN says nothing of the name, which is a client's.
var errSAN = errors.New("the client's certificate has none of the names that are let in")

// verify refuses a client whose certificate, which is known to be good, has no
// name that one of s matches.
func (s sans) verify(state tls.ConnectionState) error {
	if len(state.PeerCertificates) > 0 {
		for _, san := range s {
			if san.Matches(state.PeerCertificates[0]) {
				return nil
			}
		}
	}
	return errSAN
}
