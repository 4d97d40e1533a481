package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"os"
	"sync/atomic"

	"github.com/sluice-mesh/sluice/internal/ratelimit"
	"github.com/sluice-mesh/sluice/internal/xds"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// overXDS returns limits that a management server sends.
func (r *reading) overXDS() (limits, error) {
	s := r.said.XDSServer
	var set atomic.Pointer[policy.Set]
	o := xds.Options{
		Server: s.URL, NodeID: s.NodeID, NodeMetadata: s.NodeMetadata, Headers: s.Headers, MaxMessage: s.MaxMessage,
		Retry: s.RetryInterval, Initial: s.Backoff.Initial, Max: s.Backoff.Max, Merge: r.said.MergeDomains, OnError: r.said.OnError, Log: r.log,
		Update: func(to *policy.Set, err error) { r.updated(&set, to, err) },
	}
	if s.Backoff.Jitter {
		o.Jitter = s.Backoff.Factor
	}
	if s.TLS {
		o.TLS = func() (*tls.Config, error) { return xdsTLS(s) }
		if _, err := o.TLS(); err != nil {
			return limits{}, usageError{err}
		}
	}
	client, err := xds.New(o)
	if err != nil {
		return limits{}, err
	}
	return limits{set: set.Load, run: func(ctx context.Context, _ <-chan os.Signal) { client.Run(ctx) }}, nil
}

// updated takes a set into use, and tells what was refused.
func (r *reading) updated(set *atomic.Pointer[policy.Set], to *policy.Set, err error) {
	if err != nil {
		r.log.Error("a resource of the configuration is not used, its domain stays as it was", "faults", err)
	}
	set.Store(r.took(to, err == nil))
}

// xdsTLS reads the files anew, so that certificates can be renewed.
func xdsTLS(s ratelimit.XDSServer) (*tls.Config, error) {
	host, _, _ := net.SplitHostPort(s.URL)
	return trustFiles{
		namedFile{"CONFIG_GRPC_XDS_SERVER_TLS_CACERT", s.CACert},
		namedFile{"CONFIG_GRPC_XDS_CLIENT_TLS_CERT", s.ClientCert},
		namedFile{"CONFIG_GRPC_XDS_CLIENT_TLS_KEY", s.ClientKey},
	}.config(cmp.Or(s.SAN, host))
}
