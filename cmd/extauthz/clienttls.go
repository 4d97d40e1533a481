package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/sluice-mesh/sluice/internal/config"
)

// clientTLS says how to speak to a server with TLS. Zero is without.
type clientTLS struct {
	on                        bool
	ca, cert, key, serverName string
}

func (o *clientTLS) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.on, "tls", false, "speak TLS; so does each of the following")
	flags.StringVar(&o.ca, "tls-ca", "", "trust the authorities in this PEM `FILE` (default: the system's)")
	flags.StringVar(&o.cert, "tls-cert", "", "show the certificate in this PEM `FILE`, to a server that wants one")
	flags.StringVar(&o.key, "tls-key", "", "its key, a PEM `FILE`")
	flags.StringVar(&o.serverName, "tls-server-name", "", "the `NAME` that the server's certificate must have (default: the host of its address)")
}

func (o *clientTLS) credentials() (credentials.TransportCredentials, error) {
	c, err := o.config()
	if err != nil {
		return nil, err
	}
	if c == nil {
		return insecure.NewCredentials(), nil
	}
	return credentials.NewTLS(c), nil
}

// config is nil without TLS.
func (o *clientTLS) config() (*tls.Config, error) {
	if *o == (clientTLS{}) {
		return nil, nil
	}
	return trustFiles{namedFile{"tls-ca", o.ca}, namedFile{"tls-cert", o.cert}, namedFile{"tls-key", o.key}}.config(o.serverName)
}

// A namedFile is a file that a flag or a variable names; its path is "" for
// none.
type namedFile struct{ name, path string }

// trustFiles are the authorities by which a server is believed, and the
// certificate and key that it is shown.
type trustFiles struct{ ca, cert, key namedFile }

// config returns how to speak to a server whose certificate is to have
// serverName, or the name in its address.
func (f trustFiles) config(serverName string) (*tls.Config, error) {
	c := &tls.Config{ServerName: serverName, MinVersion: tls.VersionTLS12}
	if f.ca.path != "" {
		pem, err := os.ReadFile(f.ca.path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.ca.name, err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: found no certificate in %s, want PEM", f.ca.name, f.ca.path)
		}
	}
	return c, f.addCertificate(c)
}

// addCertificate has our own certificate shown, if there is one.
func (f trustFiles) addCertificate(c *tls.Config) error {
	cert, key := f.cert, f.key
	switch {
	case cert.path == "" && key.path == "":
		return nil
	case cert.path == "" || key.path == "":
		return fmt.Errorf("found one of %s and %s, want both or none", cert.name, key.name)
	}
	return config.ShowCertificate(c, cert.name+", "+key.name, cert.path, key.path)
}
