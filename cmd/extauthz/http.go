package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/sluice-mesh/sluice/internal/config"
	"github.com/sluice-mesh/sluice/internal/server"
	"github.com/sluice-mesh/sluice/internal/telemetry"
	"github.com/sluice-mesh/sluice/pkg/httpcheck"
)

// newHTTPCheck makes the door for checks over HTTP, also where none come: its
// settings may be wrong.
func newHTTPCheck(settings config.Settings, policies *server.Policies, s *stores, seen observers) (http.Handler, error) {
	l, err := newLimiter(s, seen, telemetry.HTTP)
	if err != nil {
		return nil, err
	}
	h, err := httpcheck.New(httpcheck.Options{
		Policies: policies.Set, Limiter: l, Identified: seen.watch.Identified, Log: seen.log.With("door", telemetry.HTTP.String()),
		Dialect: httpcheck.Dialect(settings.HTTPDialect), Callers: settings.Callers(), PeerHeader: settings.HTTPPeerHeader,
		PathPrefix: settings.HTTPPathPrefix, DenyStatus: settings.HTTPDenyStatus,
	})
	if err != nil {
		return nil, fmt.Errorf("make the HTTP door: %w", err)
	}
	return h, nil
}

// besideOptions are of a port beside the doors: it has gone on while they
// drained, and ends soon after.
func besideOptions(h http.Handler, metrics *telemetry.Metrics, log *slog.Logger) server.HTTPOptions {
	return server.HTTPOptions{Handler: h, DrainTime: time.Second, Log: log, Panicked: metrics.Panicked}
}

func (p parts) httpOptions() server.HTTPOptions {
	return server.HTTPOptions{
		Handler: p.checks, DrainDelay: p.settings.DrainDelay, DrainTime: p.settings.DrainTime,
		Log: p.log, Panicked: p.metrics.Panicked, MaxHeaderSize: p.settings.HTTPMaxHeaderSize,
		TLS: p.tls.http.config(), Refused: p.tls.http.refused(),
	}
}
