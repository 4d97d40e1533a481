// Package authority makes certificates for tests: authorities of their own, and
// what they sign, as files that servers and clients read.
package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An Authority signs certificates.
type Authority struct {
	PEM  []byte // its certificate
	File string // that holds it
	Pool *x509.CertPool

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New makes an authority. Its file lasts as long as the test.
func New(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{Pool: x509.NewCertPool(), File: filepath.Join(t.TempDir(), "ca.pem")}
	a.cert, a.key = a.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority of " + t.Name()}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotAfter: time.Now().Add(24 * time.Hour),
	})
	a.Pool.AddCert(a.cert)
	a.PEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
	write(t, a.File, a.PEM)
	return a
}

// A Leaf says whose certificate to make. The zero Leaf is of 127.0.0.1, for a
// day.
type Leaf struct {
	URIs, DNS []string
	NotAfter  time.Time
}

// A Pair is a certificate and its key, also as files.
type Pair struct {
	CertPEM, KeyPEM   []byte
	CertFile, KeyFile string
	TLS               tls.Certificate
}

// Issue makes a certificate for servers and clients. Its files last as long as
// the test.
func (a *Authority) Issue(t testing.TB, l Leaf) Pair {
	t.Helper()
	c := &x509.Certificate{
		Subject: pkix.Name{CommonName: "sluice.test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: l.DNS,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotAfter: l.NotAfter,
	}
	if c.NotAfter.IsZero() {
		c.NotAfter = time.Now().Add(24 * time.Hour)
	}
	for _, text := range l.URIs {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		c.URIs = append(c.URIs, u)
	}
	signed, key := a.sign(t, c)
	return pair(t, signed, key)
}

func pair(t testing.TB, c *x509.Certificate, key *ecdsa.PrivateKey) Pair {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	p := Pair{
		CertPEM:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}),
		KeyPEM:   pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}),
		CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key"),
	}
	write(t, p.CertFile, p.CertPEM)
	write(t, p.KeyFile, p.KeyPEM)
	if p.TLS, err = tls.X509KeyPair(p.CertPEM, p.KeyPEM); err != nil {
		t.Fatal(err)
	}
	return p
}

// Client returns how a client trusts a, and who it is. Without a pair it shows
// nothing.
func (a *Authority) Client(pairs ...Pair) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: a.Pool}
	for _, p := range pairs {
		c.Certificates = append(c.Certificates, p.TLS)
	}
	return c
}

// sign signs c; an authority without a certificate signs its own.
func (a *Authority) sign(t testing.TB, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent, parentKey := a.cert, a.key
	if parent == nil {
		parent, parentKey = c, key
	}
	if c.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		t.Fatal(err)
	}
	c.NotBefore = time.Now().Add(-48 * time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return signed, key
}

func write(t testing.TB, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
