package server

import (
	"context"

	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// probes answers for Liveness and Readiness as it is now, and leaves the
// services, and those who watch, to health.
type probes struct {
	*health.Server
	ready func(context.Context) bool
}

// Check answers at once, or as soon as ready does.
func (p probes) Check(ctx context.Context, req *healthv1.HealthCheckRequest) (*healthv1.HealthCheckResponse, error) {
	switch req.GetService() {
	case Liveness:
		return &healthv1.HealthCheckResponse{Status: healthv1.HealthCheckResponse_SERVING}, nil
	case Readiness:
		return p.readiness(ctx)
	}
	return p.Server.Check(ctx, req)
}

func (p probes) readiness(ctx context.Context) (*healthv1.HealthCheckResponse, error) {
	resp, err := p.Server.Check(ctx, &healthv1.HealthCheckRequest{})
	if err == nil && !p.ready(ctx) {
		resp.Status = healthv1.HealthCheckResponse_NOT_SERVING
	}
	return resp, err
}
