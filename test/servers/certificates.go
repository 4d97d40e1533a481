package servers

import (
	"crypto/tls"
	"testing"

	"github.com/sluice-mesh/sluice/test/authority"
)

// Certificates are an authority of a test's own, and a certificate of it for
// 127.0.0.1, that servers and clients show. The files last as long as the test.
type Certificates struct {
	CAFile, CertFile, KeyFile string

	client *tls.Config
}

// NewCertificates makes certificates.
func NewCertificates(t testing.TB) *Certificates {
	t.Helper()
	a := authority.New(t)
	p := a.Issue(t, authority.Leaf{})
	return &Certificates{CAFile: a.File, CertFile: p.CertFile, KeyFile: p.KeyFile, client: a.Client(p)}
}

// Client returns how a client trusts the servers, and is trusted by them.
func (c *Certificates) Client() *tls.Config { return c.client.Clone() }
