package chaos_test

import (
	"syscall"
	"testing"
	"time"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// TestDrain ends extauthz while callers ask it whose answers take a while.
// Those who stop when health says so, as Envoy does, lose no request.
func TestDrain(t *testing.T) {
	t.Parallel()
	s, l := startDrain(t, "--drain-delay", "5s")
	watch, err := healthv1.NewHealthClient(l.conn).Watch(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if first, err := watch.Recv(); err != nil || first.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Fatalf("Watch = %v, %v before SIGTERM, want SERVING", first, err)
	}
	tellToEnd(t, s)
	if next, err := watch.Recv(); err != nil || next.GetStatus() != healthv1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("Watch = %v, %v after SIGTERM, want NOT_SERVING", next, err)
	}
	l.await(t, 1) // who has not heard of it is answered all the same
	l.end()
	wantAnswers(t, l, time.Time{}, time.Now())
	<-s.Done()
}

// TestDrainAtOnce ends extauthz without a word to anybody: what was asked
// before is answered, however long that takes.
func TestDrainAtOnce(t *testing.T) {
	t.Parallel()
	s, l := startDrain(t)
	told := tellToEnd(t, s)
	<-s.Done()
	l.end()
	ended := 0
	for _, a := range l.between(time.Time{}, time.Now()) {
		if !a.begun.Before(told) {
			continue
		}
		if a.end.After(told) {
			ended++
		}
		if a.err != nil {
			t.Errorf("%s, asked %v before SIGTERM: %v, want an answer", a.kind, told.Sub(a.begun), a.err)
		}
	}
	if ended == 0 {
		t.Error("no request was under way at SIGTERM, want some")
	}
}

// startDrain starts extauthz with a Redis whose answers come late, and callers.
func startDrain(t *testing.T, args ...string) (*system, *load) {
	t.Helper()
	s := startSystem(t, fault{byWay: true}, append(args, "--store-deadline", patience.String())...)
	s.way.late.Store(int64(100 * time.Millisecond))
	l := startLoad(t, s.GRPC)
	l.await(t, 5)
	time.Sleep(5 * rest) // callers who were answered at once have asked again
	return s, l
}

// tellToEnd sends SIGTERM, and returns when.
func tellToEnd(t *testing.T, s *system) time.Time {
	t.Helper()
	now := time.Now()
	if err := s.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	return now
}

// wantAnswers wants that every request of that time was answered, and passed.
func wantAnswers(t *testing.T, l *load, from, to time.Time) {
	t.Helper()
	for _, a := range l.between(from, to) {
		if a.err != nil || a.kind != alone && a.status != 200 {
			t.Errorf("%s (rate limit service %v) = %d, %v, want an answer", a.kind, a.rls, a.status, a.err)
		}
	}
}
