package server

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// The names by which gRPC health is asked by what starts and ends this program,
// beside those of the services, by which its clients ask.
const (
	// Liveness serves from the first connection to the last, drain included:
	// nothing that it says can be mended by a restart.
	Liveness = "liveness"
	// Readiness is what Options.Ready says, and not when draining.
	Readiness = "readiness"
)

// probes answers for Liveness and Readiness, and leaves the services to health.
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

// Watch follows services alone: what is asked of the store is asked when
// somebody wants to know.
func (p probes) Watch(req *healthv1.HealthCheckRequest, stream grpc.ServerStreamingServer[healthv1.HealthCheckResponse]) error {
	if s := req.GetService(); s == Liveness || s == Readiness {
		return status.Errorf(codes.Unimplemented, "%s cannot be watched; ask Check for it", s)
	}
	return p.Server.Watch(req, stream)
}
