package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
)

// bare decodes a request and answers at once: what gRPC itself costs a limiter
// in Go that does nothing.
type bare struct {
	authv3.UnimplementedAuthorizationServer
	rlsv3.UnimplementedRateLimitServiceServer
}

// Check allows everything.
func (bare) Check(context.Context, *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	return &authv3.CheckResponse{HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{}}}, nil
}

// ShouldRateLimit allows everything.
func (bare) ShouldRateLimit(context.Context, *rlsv3.RateLimitRequest) (*rlsv3.RateLimitResponse, error) {
	return &rlsv3.RateLimitResponse{OverallCode: rlsv3.RateLimitResponse_OK}, nil
}

// serveFloor serves until it is told to end.
func serveFloor(addr string, stdout io.Writer) error {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	authv3.RegisterAuthorizationServer(server, bare{})
	rlsv3.RegisterRateLimitServiceServer(server, bare{})
	fmt.Fprintln(stdout, "ready")
	return serveUntilTold(server, listener)
}

func serveUntilTold(server *grpc.Server, listener net.Listener) error {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, os.Interrupt)
	go func() {
		<-ended
		server.Stop()
	}()
	return server.Serve(listener)
}
