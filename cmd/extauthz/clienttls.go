package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
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
	flags.StringVar(&o.serverName, "tls-server-name", "", "the `NAME` that the server's certificate must have (default: the host of --addr)")
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
	c := &tls.Config{ServerName: o.serverName, MinVersion: tls.VersionTLS12}
	if o.ca != "" {
		pem, err := os.ReadFile(o.ca)
		if err != nil {
			return nil, fmt.Errorf("tls-ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls-ca: found no certificate in %s, want PEM", o.ca)
		}
	}
	return c, o.addCertificate(c)
}

// addCertificate adds our own certificate to c, if there is one.
func (o *clientTLS) addCertificate(c *tls.Config) error {
	switch {
	case o.cert == "" && o.key == "":
		return nil
	case o.cert == "" || o.key == "":
		return errors.New("found one of tls-cert and tls-key, want both or none")
	}
	pair, err := tls.LoadX509KeyPair(o.cert, o.key)
	if err != nil {
		return fmt.Errorf("tls-cert, tls-key: %w", err)
	}
	c.Certificates = []tls.Certificate{pair}
	return nil
}
