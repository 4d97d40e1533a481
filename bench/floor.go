package main

import (
	"context"
	"net"
	"os"
	"os/signal"
	"syscall"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
)

// bare decodes a request and answers at once: the least that any limiter in
// Go over gRPC can cost.
type bare struct {
	authv3.UnimplementedAuthorizationServer
}

// Check allows everything.
func (bare) Check(context.Context, *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	return &authv3.CheckResponse{HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{}}}, nil
}

func serveFloor(addr string) error {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	authv3.RegisterAuthorizationServer(server, bare{})
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, os.Interrupt)
	go func() {
		<-ended
		server.Stop()
	}()
	return server.Serve(listener)
}
