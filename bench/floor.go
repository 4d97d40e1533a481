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

	"github.com/sluice-mesh/sluice/internal/server"
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

// charging is bare, but takes from a bucket first: what gRPC and a Redis cost
// together where each request goes to the Redis by itself.
type charging struct {
	bare
	redis string    // the Redis's address
	idle  chan *raw // connections that nobody uses now
}

// Check allows everything.
func (c charging) Check(ctx context.Context, r *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	if err := c.take(); err != nil {
		return nil, err
	}
	return c.bare.Check(ctx, r)
}

// ShouldRateLimit allows everything.
func (c charging) ShouldRateLimit(ctx context.Context, r *rlsv3.RateLimitRequest) (*rlsv3.RateLimitResponse, error) {
	if err := c.take(); err != nil {
		return nil, err
	}
	return c.bare.ShouldRateLimit(ctx, r)
}

// take uses a connection that no other request uses meanwhile.
func (c charging) take() error {
	r, err := c.conn()
	if err != nil {
		return err
	}
	if err := r.take(); err != nil {
		r.Close()
		return err
	}
	select {
	case c.idle <- r:
	default:
		r.Close()
	}
	return nil
}

func (c charging) conn() (*raw, error) {
	select {
	case r := <-c.idle:
		return r, nil
	default:
		return dialRaw(c.redis)
	}
}

// mostIdle is how many connections are kept: more than there are callers.
const mostIdle = 1024

// newFloor makes a server that is bare, or with the address of a Redis
// charging. That one leaves the windows of its connections as they are, as ours
// does: with gRPC's own it would ping its client in each request that waits for
// a Redis, and the answer to that would be in the way.
func newFloor(redis string) *grpc.Server {
	if redis == "" {
		return register(grpc.NewServer(), bare{})
	}
	floor := grpc.NewServer(grpc.StaticStreamWindowSize(server.StreamWindow), grpc.StaticConnWindowSize(server.ConnWindow))
	return register(floor, charging{redis: redis, idle: make(chan *raw, mostIdle)})
}

// doors are the two that are measured.
type doors interface {
	authv3.AuthorizationServer
	rlsv3.RateLimitServiceServer
}

func register(server *grpc.Server, d doors) *grpc.Server {
	authv3.RegisterAuthorizationServer(server, d)
	rlsv3.RegisterRateLimitServiceServer(server, d)
	return server
}

// ready is what a server prints that serves, before its address.
const ready = "ready "

// serveFloor serves until it is told to end.
func serveFloor(addr, redis string, stdout io.Writer) error {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	floor := newFloor(redis)
	fmt.Fprintln(stdout, ready+listener.Addr().String())
	return serveUntilTold(floor, listener)
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
