package main

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/sluice-mesh/sluice/internal/admin"
	"github.com/sluice-mesh/sluice/internal/config"
	"github.com/sluice-mesh/sluice/internal/server"
	"github.com/sluice-mesh/sluice/internal/telemetry"
)

// A secured is a port, and its certificates if it speaks TLS. The zero value
// is one in plain text.
type secured struct {
	name         string
	certificates *server.Certificates
	count        *telemetry.Ports
	log          *slog.Logger
}

// securedPorts are all ports, as far as they speak TLS.
type securedPorts struct{ grpc, http, admin secured }

// secure reads the certificates of all ports for the first time.
func secure(settings config.Settings, metrics *telemetry.Metrics, log *slog.Logger) (securedPorts, error) {
	count := metrics.Ports()
	var ports securedPorts
	var errs []error
	for _, port := range []struct {
		into      *secured
		name      string
		said      config.PortTLS
		protocols []string
	}{
		{&ports.grpc, "grpc", settings.ForGRPC(), []string{"h2"}},
		{&ports.http, "http", settings.ForHTTP(), []string{"h2", "http/1.1"}},
		{&ports.admin, "admin", settings.ForAdmin(), []string{"h2", "http/1.1"}},
	} {
		*port.into = secured{name: port.name, count: count, log: log}
		if port.said.On() {
			errs = append(errs, port.into.read(port.said, settings.MinVersion(), port.protocols))
		}
	}
	return ports, errors.Join(errs...)
}

func (s *secured) read(said config.PortTLS, version uint16, protocols []string) error {
	var err error
	s.certificates, err = server.NewCertificates(server.CertificatesOptions{
		Setting: said.Setting, CertFile: said.Cert, KeyFile: said.Key, ClientCAFile: said.ClientCA, ClientSANs: said.ClientSAN,
		MinVersion: version, Protocols: protocols, Reloaded: s.reloaded,
	})
	if err == nil {
		s.count.Certificate(s.name, s.certificates.NotAfter(), true)
	}
	return err
}

// reloaded tells what became of reading the files again.
func (s *secured) reloaded(err error) {
	s.count.Certificate(s.name, s.certificates.NotAfter(), err == nil)
	if err != nil {
		s.log.Error("certificate files have faults, the last good ones stay in use", "port", s.name, "error", err)
		return
	}
	s.log.Info("certificates loaded", "port", s.name, "not_after", s.certificates.NotAfter().UTC())
}

// config is nil for a port in plain text.
func (s *secured) config() *tls.Config {
	if s.certificates == nil {
		return nil
	}
	return s.certificates.Config()
}

// refused counts a connection that failed.
func (s *secured) refused() func(string) { return s.count.Refused(s.name) }

func (p *securedPorts) all() []*secured { return []*secured{&p.grpc, &p.http, &p.admin} }

// follow reads the files again when they change, until ctx ends.
func (p *securedPorts) follow(ctx context.Context, beside *sync.WaitGroup) {
	for _, s := range p.all() {
		if s.certificates != nil {
			beside.Go(func() { s.certificates.Run(ctx) })
		}
	}
}

// check looks at all certificates: one that is out of date, or whose successor
// cannot be read, degrades.
func (p *securedPorts) check(now time.Time) []admin.Check {
	var checks []admin.Check
	for _, s := range p.all() {
		if s.certificates == nil {
			continue
		}
		until := s.certificates.NotAfter()
		c := admin.Check{Name: s.name + "-tls", OK: now.Before(until), Detail: "the certificate expires " + until.UTC().Format(time.RFC3339)}
		if err := s.certificates.Err(); err != nil {
			c.OK = false
			c.Detail += "; the files that were read last have faults: " + oneLine(err)
		}
		checks = append(checks, c)
	}
	return checks
}
