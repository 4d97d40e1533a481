package server_test

import (
	"testing"
	"time"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/sluice-mesh/sluice/internal/server"
)

// Who watches a service is told of each change, and of nothing else; while the
// server drains only liveness goes on.
func TestSetServing(t *testing.T) {
	t.Parallel()
	s := server.New(server.Options{Services: []server.Service{echo(nil)}, DrainDelay: 200 * time.Millisecond})
	r := runServer(t, s)
	statuses := map[string]func() healthv1.HealthCheckResponse_ServingStatus{}
	for _, name := range []string{"", server.Readiness, server.Liveness, "test.Echo"} {
		watch, err := healthv1.NewHealthClient(r.conn).Watch(t.Context(), &healthv1.HealthCheckRequest{Service: name})
		if err != nil {
			t.Fatal(err)
		}
		statuses[name] = func() healthv1.HealthCheckResponse_ServingStatus {
			next, err := watch.Recv()
			if err != nil {
				t.Fatalf("Watch(%q) = %v, want a status", name, err)
			}
			return next.GetStatus()
		}
	}
	wants := func(name string, want healthv1.HealthCheckResponse_ServingStatus) {
		t.Helper()
		if got := statuses[name](); got != want {
			t.Errorf("Watch(%q) = %v, want %v", name, got, want)
		}
	}
	for name := range statuses {
		wants(name, serving)
	}
	s.SetServing("test.Echo", true)
	s.SetServing("test.Echo", false)
	wants("test.Echo", notServing)
	s.SetServing(server.Readiness, false)
	s.SetServing(server.Readiness, true)
	s.SetServing("test.Echo", true)
	wants("test.Echo", serving)
	r.tell()
	wants("", notServing)
	wants("test.Echo", notServing)
	s.SetServing("test.Echo", true) // too late
	for name, want := range map[string]healthv1.HealthCheckResponse_ServingStatus{server.Liveness: serving, "test.Echo": notServing} {
		got, err := healthv1.NewHealthClient(r.conn).Check(t.Context(), &healthv1.HealthCheckRequest{Service: name})
		if err != nil || got.GetStatus() != want {
			t.Errorf("Check(%q) = %v, %v while it drains, want %v", name, got, err, want)
		}
	}
	if err := r.ended(t); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
}
