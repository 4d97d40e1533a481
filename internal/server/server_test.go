package server_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/sluice-mesh/sluice/internal/server"
)

// echo is a service with one method, which does what call does.
func echo(call func(context.Context) error) server.Service {
	method := func(_ any, ctx context.Context, dec func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
		in := new(emptypb.Empty)
		if err := dec(in); err != nil {
			return nil, err
		}
		return intercept(ctx, in, &grpc.UnaryServerInfo{FullMethod: "/test.Echo/Call"}, func(ctx context.Context, in any) (any, error) {
			return in, call(ctx)
		})
	}
	desc := &grpc.ServiceDesc{ServiceName: "test.Echo", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{MethodName: "Call", Handler: method}}}
	return server.Service{Name: "test.Echo", Register: func(r grpc.ServiceRegistrar) { r.RegisterService(desc, struct{}{}) }}
}

// A running is a server under test.
type running struct {
	conn *grpc.ClientConn
	addr net.Addr
	tell context.CancelFunc // it to end
	done chan error
}

func run(t *testing.T, o server.Options) *running {
	t.Helper()
	return runServer(t, server.New(o))
}

func runServer(t *testing.T, s *server.Server) *running {
	t.Helper()
	l, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &running{addr: l.Addr(), done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	r.tell = cancel
	go func() { r.done <- s.Run(ctx, l) }()
	if r.conn, err = grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		r.conn.Close()
	})
	return r
}

func (r *running) call(ctx context.Context) error {
	return r.conn.Invoke(ctx, "/test.Echo/Call", new(emptypb.Empty), new(emptypb.Empty), grpc.WaitForReady(true))
}

func (r *running) ended(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.done:
		return err
	case <-time.After(20 * time.Second):
		t.Fatal("the server has not ended after 20s")
		return nil
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	r := run(t, server.Options{Services: []server.Service{echo(func(context.Context) error { return nil })}})
	for _, tt := range []struct {
		service string
		code    codes.Code
	}{{"", codes.OK}, {"test.Echo", codes.OK}, {server.Liveness, codes.OK}, {server.Readiness, codes.OK}, {"test.Other", codes.NotFound}} {
		got, err := healthv1.NewHealthClient(r.conn).Check(t.Context(), &healthv1.HealthCheckRequest{Service: tt.service})
		if status.Code(err) != tt.code || err == nil && got.Status != healthv1.HealthCheckResponse_SERVING {
			t.Errorf("health.Check(%q) = %v, %v, want code %v", tt.service, got, err, tt.code)
		}
	}
}

func TestReflectionIsOff(t *testing.T) {
	t.Parallel()
	r := run(t, server.Options{})
	stream, err := reflectionv1.NewServerReflectionClient(r.conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.Unimplemented {
		t.Errorf("ServerReflectionInfo = %v, want Unimplemented", err)
	}
}

// A handler that panics is one error, of which the log has nothing that a
// client wrote.
func TestPanic(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		panic func()
		log   string
	}{
		{"with a client's data", func() { panic("secret") }, "panic=string"},
		{"with an error of a client's", func() { panic(errors.New("secret")) }, "panic=*errors.errorString"},
		{"of the runtime", func() { _ = []int{}[len(t.Name())] }, "index out of range"},
	} {
		var log bytes.Buffer
		var panics atomic.Int64
		r := run(t, server.Options{
			Services: []server.Service{echo(func(context.Context) error { tt.panic(); return nil })},
			Log:      slog.New(slog.NewTextHandler(&log, nil)), Panicked: func() { panics.Add(1) },
		})
		err := r.call(t.Context())
		if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: Call = %v, want Internal without a word of it", tt.name, err)
		}
		r.tell()
		_ = r.ended(t)
		if got := log.String(); !strings.Contains(got, tt.log) || strings.Contains(got, "secret") || panics.Load() != 1 {
			t.Errorf("%s: log = %q with %d panics, want %q, no secret and 1", tt.name, got, panics.Load(), tt.log)
		}
	}
}

// A call that is under way when the server is told to end is answered; health
// says before that that no more should come, and those who watch it, or hold
// any other stream, do not keep the server from ending.
func TestDrain(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	r := run(t, server.Options{
		Services:   []server.Service{echo(func(context.Context) error { close(entered); <-leave; return nil })},
		Reflection: true, DrainTime: time.Minute,
	})
	watch, err := healthv1.NewHealthClient(r.conn).Watch(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if first, err := watch.Recv(); err != nil || first.Status != healthv1.HealthCheckResponse_SERVING {
		t.Fatalf("Watch = %v, %v, want SERVING", first, err)
	}
	if _, err := reflectionv1.NewServerReflectionClient(r.conn).ServerReflectionInfo(t.Context()); err != nil {
		t.Fatal(err)
	}
	called := make(chan error, 1)
	go func() { called <- r.call(context.Background()) }()
	<-entered
	r.tell()
	if next, err := watch.Recv(); err != nil || next.Status != healthv1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("Watch = %v, %v when draining, want NOT_SERVING", next, err)
	}
	if _, err := watch.Recv(); err == nil {
		t.Error("Watch goes on, want its end")
	}
	select {
	case err := <-r.done:
		t.Fatalf("Run = %v with a call under way, want it to wait", err)
	default:
	}
	close(leave)
	if err := <-called; err != nil {
		t.Errorf("Call = %v while the server drained, want an answer", err)
	}
	if err := r.ended(t); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
}

func TestDrainTakesTooLong(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{})
	r := run(t, server.Options{
		Services: []server.Service{echo(func(ctx context.Context) error {
			close(entered)
			<-ctx.Done()
			return ctx.Err()
		})},
		DrainTime: time.Millisecond,
	})
	called := make(chan error, 1)
	go func() { called <- r.call(context.Background()) }()
	<-entered
	r.tell()
	if err := r.ended(t); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
	if err := <-called; err == nil {
		t.Error("Call = nil after the drain time, want an error")
	}
}

func TestListen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, addr := range []string{"127.0.0.1:0", "unix:" + filepath.Join(dir, "s")} {
		l, err := server.Listen(addr)
		if err != nil {
			t.Fatalf("Listen(%q) = %v, want a listener", addr, err)
		}
		again := addr
		if l.Addr().Network() == "tcp" {
			again = l.Addr().String()
		}
		if _, err := server.Listen(again); !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "choose another") {
			t.Errorf("Listen(%q) = %v while it is taken, want address already in use, and what to do", again, err)
		}
		l.Close()
	}
}

// A socket of a process that was killed is taken over, a file is not.
func TestListenAtOldSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	old, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	old.(*net.UnixListener).SetUnlinkOnClose(false)
	old.Close()
	l, err := server.Listen("unix:" + path)
	if err != nil {
		t.Fatalf("Listen(an old socket) = %v, want a listener", err)
	}
	l.Close()
}
