package server

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"time"
)

// A fileError is a file that cannot be used. Nothing of what the file holds is
// in it: that may be a key.
type fileError struct {
	setting, file string
	found, want   string
}

// Error says all of e in one line.
func (e *fileError) Error() string {
	return fmt.Sprintf("setting %s: found %s in %s, want %s", e.setting, e.found, e.file, e.want)
}

// readPair reads a certificate that can be shown at the time now, and its key.
// One that is not valid yet is no fault: clocks differ, and nobody would read
// it again when it is.
func (o CertificatesOptions) readPair(now time.Time) (tls.Certificate, error) {
	cert, key := o.Setting+"-cert", o.Setting+"-key"
	certText, certErr := readPEM(cert, o.CertFile, "a certificate in PEM")
	keyText, keyErr := readPEM(key, o.KeyFile, "the key of the certificate in PEM")
	if err := errors.Join(certErr, keyErr); err != nil {
		return tls.Certificate{}, err
	}
	chain, err := parseCertificates(certText)
	if err != nil {
		return tls.Certificate{}, &fileError{cert, o.CertFile, err.Error(), "a certificate in PEM, and after it those that lead to its authority"}
	}
	if leaf := chain[0]; now.After(leaf.NotAfter) {
		return tls.Certificate{}, &fileError{cert, o.CertFile, "a certificate that expired " + leaf.NotAfter.UTC().Format(time.RFC3339), "one that is valid"}
	}
	pair, err := tls.X509KeyPair(certText, keyText)
	if err != nil {
		return tls.Certificate{}, &fileError{key, o.KeyFile, plain(err), "the key of the certificate in " + o.CertFile}
	}
	return pair, nil
}

// plain is err as what was found: the errors of tls are about their own names.
func plain(err error) string {
	return fmt.Sprintf("something else (%v)", err)
}

func readPEM(setting, name, want string) ([]byte, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		var path *os.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return nil, &fileError{setting, name, "nothing (" + err.Error() + ")", want}
	}
	return text, nil
}

// parseCertificates returns at least one certificate. The error is what was
// found.
func parseCertificates(text []byte) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d that cannot be read (%w)", len(all)+1, err)
		}
		all = append(all, c)
	}
	switch {
	case len(all) > 0:
		return all, nil
	case len(text) == 0:
		return nil, errors.New("an empty file")
	}
	return nil, errors.New("no certificate")
}

// readAuthorities reads the certificates of authorities, all or none.
func readAuthorities(setting, name string) (*x509.CertPool, error) {
	const want = "certificates of authorities in PEM"
	text, err := readPEM(setting, name, want)
	if err != nil {
		return nil, err
	}
	all, err := parseCertificates(text)
	if err != nil {
		return nil, &fileError{setting, name, err.Error(), want}
	}
	pool := x509.NewCertPool()
	for _, c := range all {
		pool.AddCert(c)
	}
	return pool, nil
}
