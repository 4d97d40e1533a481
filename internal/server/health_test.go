package server_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/sluice-mesh/sluice/internal/server"
)

const (
	serving    = healthv1.HealthCheckResponse_SERVING
	notServing = healthv1.HealthCheckResponse_NOT_SERVING
)

// wantHealth asks for the server itself, its readiness and its liveness.
func (r *running) wantHealth(t *testing.T, step string, want ...healthv1.HealthCheckResponse_ServingStatus) {
	t.Helper()
	for i, service := range []string{"", server.Readiness, server.Liveness} {
		got, err := healthv1.NewHealthClient(r.conn).Check(t.Context(), &healthv1.HealthCheckRequest{Service: service})
		if err != nil || got.Status != want[i] {
			t.Errorf("%s: health.Check(%q) = %v, %v, want %v", step, service, got, err, want[i])
		}
	}
}

// That no requests may be sent here is no reason for a restart, and neither is a
// drain; the clients that are connected go by neither until it drains.
func TestProbes(t *testing.T) {
	t.Parallel()
	var ready atomic.Bool
	r := run(t, server.Options{
		Ready:      func(context.Context) bool { return ready.Load() },
		DrainDelay: time.Minute, // longer than the test
	})
	r.wantHealth(t, "not ready", serving, notServing, serving)
	ready.Store(true)
	r.wantHealth(t, "ready", serving, serving, serving)
	watch, err := healthv1.NewHealthClient(r.conn).Watch(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	r.tell()
	for got := serving; got == serving; {
		next, err := watch.Recv()
		if err != nil {
			t.Fatal(err)
		}
		got = next.Status
	}
	r.wantHealth(t, "draining", notServing, notServing, serving)
}
