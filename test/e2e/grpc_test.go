package e2e_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// echoes is a gRPC service of any name: it sends back every message of a call.
func echoes(_ any, stream grpc.ServerStream) error {
	for {
		m := new(emptypb.Empty)
		if err := stream.RecvMsg(m); err != nil {
			return nil // the client has said all
		}
		if err := stream.SendMsg(m); err != nil {
			return err
		}
	}
}

func startEchoes(calls *atomic.Int64) func(*testing.T) int {
	return func(t *testing.T) int {
		t.Helper()
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		count := func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			calls.Add(1)
			return handler(srv, stream)
		}
		s := grpc.NewServer(grpc.UnknownServiceHandler(echoes), grpc.StreamInterceptor(count))
		served := make(chan error, 1)
		go func() { served <- s.Serve(l) }()
		t.Cleanup(func() {
			s.Stop()
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
		return l.Addr().(*net.TCPAddr).Port
	}
}

// fromGRPC returns a connection from address to the listener of Envoy.
func (y *system) fromGRPC(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	conn, err := grpc.NewClient(fmt.Sprintf("passthrough:///127.0.0.1:%d", y.ports[edgePort]),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return dialer.DialContext(ctx, "tcp4", addr) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// A gRPC client over its limit is told RESOURCE_EXHAUSTED, with a word and when
// to come back, by each door; a stream is one call.
func TestGRPC(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	s := published("grpc")
	s.upstream = startEchoes(&calls)
	y := start(t, s)
	anna, ben := y.fromGRPC(t, anna), y.fromGRPC(t, ben)
	call := func(conn *grpc.ClientConn, method string) (metadata.MD, error) {
		var header, trailer metadata.MD
		err := conn.Invoke(t.Context(), method, new(emptypb.Empty), new(emptypb.Empty), grpc.Header(&header), grpc.Trailer(&trailer))
		return metadata.Join(header, trailer), err
	}
	for i, want := range []codes.Code{codes.OK, codes.OK, codes.OK} {
		if _, err := call(anna, "/shop.Orders/Place"); status.Code(err) != want {
			t.Errorf("Place, call %d: %v, want %v", i+1, err, want)
		}
	}
	stream, err := anna.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/shop.Orders/Follow")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		m := new(emptypb.Empty)
		if err := stream.SendMsg(m); err != nil {
			t.Fatalf("message %d of a stream: %v", i, err)
		}
		if err := stream.RecvMsg(m); err != nil {
			t.Fatalf("message %d of a stream: %v, want it back", i, err)
		}
	}
	if _, err := call(anna, "/shop.Orders/Place"); err != nil {
		t.Errorf("Place, the fifth call: %v, want nil", err)
	}
	sent, err := call(anna, "/shop.Orders/Cancel")
	if status.Code(err) != codes.ResourceExhausted || !strings.HasPrefix(status.Convert(err).Message(), "too many orders, try again in ") {
		t.Errorf("Cancel, the sixth call: %v, want ResourceExhausted and the rule's words", err)
	}
	if got := sent.Get("retry-after"); len(got) != 1 {
		t.Errorf("retry-after of a denial: %q, want one; all: %v", got, sent)
	}
	if _, err := call(ben, "/shop.Orders/Place"); err != nil {
		t.Errorf("Place of another: %v, want nil", err)
	}
	for i, want := range []codes.Code{codes.OK, codes.OK, codes.OK, codes.ResourceExhausted} {
		if _, err := call([]*grpc.ClientConn{anna, ben}[i%2], "/shop.Search/Find"); status.Code(err) != want {
			t.Errorf("Find, call %d: %v, want %v", i+1, err, want)
		}
	}
	if got := calls.Load(); got != 9 {
		t.Errorf("the service had %d calls, want the 9 that were let through", got)
	}
}

// A policy's word on what becomes of calls without Sluice: UNAVAILABLE, never
// PERMISSION_DENIED.
func TestGRPCFailsClosed(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	s := published("grpc")
	s.upstream = startEchoes(&calls)
	s.edit = func(text string) string {
		return strings.Replace(text, "failure_mode_allow: true", "failure_mode_allow: false", 1)
	}
	y := start(t, s)
	if err := y.sluices[0].Stop(stopTime); err != nil {
		t.Fatal(err)
	}
	err := y.fromGRPC(t, anna).Invoke(t.Context(), "/shop.Orders/Place", new(emptypb.Empty), new(emptypb.Empty))
	if status.Code(err) != codes.Unavailable || calls.Load() != 0 {
		t.Errorf("Place without Sluice: %v after %d calls, want Unavailable after none", err, calls.Load())
	}
}
