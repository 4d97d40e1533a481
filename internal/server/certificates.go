package server

import (
	"context"
	"crypto/tls"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// CertificatesOptions say what a port shows its clients, and which of them it
// lets in. CertFile and KeyFile are required; all files are PEM.
type CertificatesOptions struct {
	// Setting is what the names of the settings begin with that say all this,
	// for errors: grpc-tls.
	Setting           string
	CertFile, KeyFile string
	// ClientCAFile holds the authorities of which each client must show a
	// certificate; "" lets in anybody.
	ClientCAFile string
	// ClientSANs are patterns, as of ParseSAN; none lets in every client that
	// ClientCAFile does.
	ClientSANs []string
	// MinVersion is 0 for TLS 1.2; less is not to be had.
	MinVersion uint16
	// Protocols are what ALPN offers, the best first.
	Protocols []string
	// Reloaded is called after each reading but the first, with what was wrong
	// with the files, or nil. It may be nil itself.
	Reloaded func(error)
}

// Certificates are what one port shows and believes. They are read again when
// the files change; files that cannot be used change nothing. A Certificates
// may be used by anybody at any time.
type Certificates struct {
	opts   CertificatesOptions
	inUse  atomic.Pointer[certificates]
	seen   stamp // of what was read last; only Run and NewCertificates touch it
	mu     sync.Mutex
	failed error
}

// certificates are one reading.
type certificates struct {
	config   *tls.Config
	notAfter time.Time
}

// NewCertificates reads the files for the first time. The error joins all that
// is wrong with them, and names settings.
func NewCertificates(o CertificatesOptions) (*Certificates, error) {
	if o.Reloaded == nil {
		o.Reloaded = func(error) {}
	}
	o.MinVersion = max(o.MinVersion, tls.VersionTLS12)
	c := &Certificates{opts: o, seen: stampOf(o.files())}
	read, err := o.read(time.Now())
	if err != nil {
		return nil, err
	}
	c.inUse.Store(read)
	return c, nil
}

func (o CertificatesOptions) files() []string {
	return slices.DeleteFunc([]string{o.CertFile, o.KeyFile, o.ClientCAFile}, func(name string) bool { return name == "" })
}

// Config returns what serves a port. Each handshake goes by the files that
// were read last.
func (c *Certificates) Config() *tls.Config {
	return &tls.Config{
		MinVersion: c.opts.MinVersion,
		NextProtos: c.opts.Protocols,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return c.inUse.Load().config, nil
		},
	}
}

// NotAfter is when the certificate in use expires.
func (c *Certificates) NotAfter() time.Time { return c.inUse.Load().notAfter }

// Err returns what is wrong with the files that were read last, nil if they
// are in use.
func (c *Certificates) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// Run reads the files again whenever they have changed, until ctx ends.
func (c *Certificates) Run(ctx context.Context) {
	f := follower{
		stamp: func() stamp { return stampOf(c.opts.files()) }, load: c.reload,
		// Nobody renews a certificate in a hurry: looking does without hints.
		poll: time.Second, quiet: quietTime, patience: patience,
	}
	f.run(ctx, c.seen)
}

func (c *Certificates) reload() {
	read, err := c.opts.read(time.Now())
	if err == nil {
		c.inUse.Store(read)
	}
	c.mu.Lock()
	c.failed = err
	c.mu.Unlock()
	c.opts.Reloaded(err)
}

// read makes a configuration of what the files hold at the time now.
func (o CertificatesOptions) read(now time.Time) (*certificates, error) {
	pair, pairErr := o.readPair(now)
	patterns, sanErr := parseSANs(o.Setting+"-client-san", o.ClientSANs)
	config := &tls.Config{MinVersion: o.MinVersion, NextProtos: o.Protocols}
	var caErr error
	if o.ClientCAFile != "" {
		config.ClientAuth = tls.RequireAndVerifyClientCert
		config.ClientCAs, caErr = readAuthorities(o.Setting+"-client-ca", o.ClientCAFile)
	}
	if len(patterns) > 0 {
		config.VerifyConnection = patterns.verify
	}
	if err := errors.Join(pairErr, caErr, sanErr); err != nil {
		return nil, err
	}
	config.Certificates = []tls.Certificate{pair}
	return &certificates{config, pair.Leaf.NotAfter}, nil
}
