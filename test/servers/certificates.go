package servers

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
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Certificates are an authority of a test's own, and a certificate of it for
// 127.0.0.1, that servers and clients show. The files last as long as the test.
type Certificates struct {
	CAFile, CertFile, KeyFile string

	roots *x509.CertPool
	pair  tls.Certificate
}

// NewCertificates makes certificates.
func NewCertificates(t testing.TB) *Certificates {
	t.Helper()
	dir := t.TempDir()
	c := &Certificates{
		CAFile: filepath.Join(dir, "ca.pem"), CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem"),
		roots: x509.NewCertPool(),
	}
	authority, authorityKey := sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"},
		IsCA:    true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil, nil)
	leaf, key := sign(t, &x509.Certificate{
		Subject:     pkix.Name{CommonName: "server"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, authority, authorityKey)
	c.roots.AddCert(authority)
	c.pair = tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}
	text, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatalf("write the key: %v", err)
	}
	writePEM(t, c.CAFile, "CERTIFICATE", authority.Raw)
	writePEM(t, c.CertFile, "CERTIFICATE", leaf.Raw)
	writePEM(t, c.KeyFile, "EC PRIVATE KEY", text)
	return c
}

// Client returns how a client trusts the servers, and is trusted by them.
func (c *Certificates) Client() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.roots, Certificates: []tls.Certificate{c.pair}}
}

// sign fills in and signs c; without a parent it signs itself.
func sign(t testing.TB, c, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("make a key: %v", err)
	}
	if parent == nil {
		parent, parentKey = c, key
	}
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatalf("sign a certificate: %v", err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatalf("read a certificate: %v", err)
	}
	return signed, key
}

func writePEM(t testing.TB, name, kind string, der []byte) {
	t.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
