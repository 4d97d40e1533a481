package main

import (
	"fmt"
	"log/slog"

	"github.com/sluice-mesh/sluice/internal/server"
	"github.com/sluice-mesh/sluice/internal/telemetry"
	"github.com/sluice-mesh/sluice/pkg/authz"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/rls"
)

// newServices makes the doors, each with a limiter that tells which door it
// decides for. They share the stores.
func newServices(policies *server.Policies, s *stores, metrics *telemetry.Metrics, log *slog.Logger) ([]server.Service, error) {
	authzLimiter, err := newLimiter(s, metrics, telemetry.Authz, log)
	if err != nil {
		return nil, err
	}
	check, err := authz.New(authz.Options{Policies: policies.Set, Limiter: authzLimiter})
	if err != nil {
		return nil, fmt.Errorf("make the ext_authz door: %w", err)
	}
	rlsLimiter, err := newLimiter(s, metrics, telemetry.RLS, log)
	if err != nil {
		return nil, err
	}
	limit, err := rls.New(rls.Options{Policies: policies.Set, Limiter: rlsLimiter})
	if err != nil {
		return nil, fmt.Errorf("make the rate limit door: %w", err)
	}
	return []server.Service{server.Authz(check), server.RateLimit(limit)}, nil
}

func newLimiter(s *stores, metrics *telemetry.Metrics, door telemetry.Door, log *slog.Logger) (*limiter.Limiter, error) {
	l, err := limiter.New(limiter.Options{
		Store: s.main, Local: s.local, Observe: metrics.Observer(door), Log: log.With("door", door.String()),
	})
	if err != nil {
		return nil, fmt.Errorf("make a limiter: %w", err)
	}
	return l, nil
}
