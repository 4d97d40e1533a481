package kube_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
)

// policy lets each address through as often as burst says, and then for an
// hour no more. Nobody is let through without the store, so that no replica
// counts for itself, and none is ready before its store answers.
func policy(burst int) string {
	return fmt.Sprintf("domain: edge\non_error: deny\nrules: [{name: all, match: {path: /*}, per: [ip], limits: [{rate: %d/1h, refill: interval}]}]\n", burst)
}

// door asks the Service of a release as Envoy does.
func (r *release) door(t *testing.T) authv3.AuthorizationClient {
	t.Helper()
	var at string
	err := await(t.Context(), startTime, func(ctx context.Context) (err error) {
		at, err = r.Node.Address(ctx, r.namespace, serviceName, 9001)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("passthrough:///"+at, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return authv3.NewAuthorizationClient(conn)
}

// serviceName is the Service of the release "limiter".
const serviceName = "limiter-sluice"

// admitted asks n times for one address and returns how often it was let
// through.
func admitted(ctx context.Context, door authv3.AuthorizationClient, address string, n int) (int, error) {
	through := 0
	for range n {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		answer, err := door.Check(ctx, request(address), grpc.WaitForReady(true))
		cancel()
		if err != nil {
			return through, err
		}
		if answer.GetStatus().GetCode() == int32(codes.OK) {
			through++
		}
	}
	return through, nil
}

func request(address string) *authv3.CheckRequest {
	return &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Source: &authv3.AttributeContext_Peer{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{
			SocketAddress: &corev3.SocketAddress{Address: address, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 40000}},
		}}},
		Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{
			Method: "GET", Path: "/", Host: "example.test", Scheme: "http", Protocol: "HTTP/1.1",
		}},
	}}
}

// wantBurst wants a caller that was not seen yet to be let through so often.
func wantBurst(t *testing.T, what string, door authv3.AuthorizationClient, address string, burst int) {
	t.Helper()
	got, err := admitted(t.Context(), door, address, burst+3)
	if err != nil || got != burst {
		t.Errorf("%s: %d of %d requests were let through (%v), want %d", what, got, burst+3, err, burst)
	}
}

// awaitBurst waits until callers that were not seen yet are let through so
// often: an edit of a policy takes its way to the pods.
func awaitBurst(t *testing.T, what string, door authv3.AuthorizationClient, burst int) {
	t.Helper()
	n := 0
	err := await(t.Context(), time.Minute, func(ctx context.Context) error {
		n++
		got, err := admitted(ctx, door, fmt.Sprintf("198.51.%d.%d", 100+n/250, 1+n%250), burst+3)
		if err == nil && got != burst {
			err = fmt.Errorf("%d of %d requests were let through, want %d", got, burst+3, burst)
		}
		return err
	})
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}
