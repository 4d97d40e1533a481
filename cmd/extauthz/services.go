package main

import (
	"fmt"

	"github.com/sluice-mesh/sluice/internal/server"
	"github.com/sluice-mesh/sluice/internal/telemetry"
	"github.com/sluice-mesh/sluice/pkg/authz"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/rls"
)

// newServices makes the doors, each with a limiter that tells which door it
// decides for. They share the stores.
func newServices(policies *server.Policies, s *stores, seen observers) ([]server.Service, error) {
	authzLimiter, err := newLimiter(s, seen, telemetry.Authz)
	if err != nil {
		return nil, err
	}
	check, err := authz.New(authz.Options{Policies: policies.Set, Limiter: authzLimiter, Identified: seen.watch.Identified})
	if err != nil {
		return nil, fmt.Errorf("make the ext_authz door: %w", err)
	}
	rlsLimiter, err := newLimiter(s, seen, telemetry.RLS)
	if err != nil {
		return nil, err
	}
	limit, err := rls.New(rls.Options{Policies: policies.Set, Limiter: rlsLimiter})
	if err != nil {
		return nil, fmt.Errorf("make the rate limit door: %w", err)
	}
	return []server.Service{server.Authz(check), server.RateLimit(limit)}, nil
}

func newLimiter(s *stores, seen observers, door telemetry.Door) (*limiter.Limiter, error) {
	l, err := limiter.New(limiter.Options{
		Store: s.main, Local: s.local, Observe: seen.decided(door), Log: seen.log.With("door", door.String()),
	})
	if err != nil {
		return nil, fmt.Errorf("make a limiter: %w", err)
	}
	return l, nil
}
