package server

import healthv1 "google.golang.org/grpc/health/grpc_health_v1"

// The names by which gRPC health is asked by what starts and ends this program,
// beside those of the services, by which its clients ask. "" is the server,
// which serves until it drains.
const (
	// Liveness serves from the first connection to the last, drain included:
	// nothing that it says can be mended by a restart.
	Liveness = "liveness"
	// Readiness is what Options.Ready says, and to those who watch it what
	// SetServing said last; not when draining.
	Readiness = "readiness"
)

// SetServing has health say of a service whether it serves, and tells those
// who watch it. Once the server drains nothing serves, whatever is set.
func (s *Server) SetServing(name string, serving bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.draining {
		s.set(name, serving)
	}
}

// set has the lock. To set what is already so wakes nobody.
func (s *Server) set(name string, serving bool) {
	status := healthv1.HealthCheckResponse_NOT_SERVING
	if serving {
		status = healthv1.HealthCheckResponse_SERVING
	}
	s.health.SetServingStatus(name, status)
}

func (s *Server) stopServing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	for _, name := range s.names {
		if name != Liveness {
			s.set(name, false)
		}
	}
}
