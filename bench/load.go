package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// An ask sends one request; caller numbers the callers from 0.
type ask func(ctx context.Context, caller int) error

// closedLoop lets every caller ask again as soon as it has its answer.
func closedLoop(ctx context.Context, o options, ask ask) (n int64, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.seconds+10*time.Second)
	defer cancel()
	var done atomic.Int64
	errs := make(chan error, o.callers)
	start := time.Now()
	var all sync.WaitGroup
	for caller := range o.callers {
		all.Go(func() {
			for time.Since(start) < o.seconds {
				if err := ask(ctx, caller); err != nil {
					errs <- err
					return
				}
				done.Add(1)
			}
		})
	}
	all.Wait()
	took = time.Since(start)
	select {
	case err = <-errs:
	default:
	}
	return done.Load(), took, err
}

// checks asks an ext_authz server over o.conns connections.
func checks(o options, addr string) (ask, func(), error) {
	conns := make([]*grpc.ClientConn, o.conns)
	closeAll := func() {
		for _, c := range conns {
			if c != nil {
				_ = c.Close()
			}
		}
	}
	clients := make([]authv3.AuthorizationClient, o.conns)
	for i := range conns {
		conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		conns[i], clients[i] = conn, authv3.NewAuthorizationClient(conn)
	}
	return func(ctx context.Context, caller int) error {
		answer, err := clients[caller%o.conns].Check(ctx, checkRequest(caller))
		if err == nil && answer.GetStatus().GetCode() != 0 {
			return fmt.Errorf("denied with code %d", answer.GetStatus().GetCode())
		}
		return err
	}, closeAll, nil
}

func checkRequest(caller int) *authv3.CheckRequest {
	return &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Source: &authv3.AttributeContext_Peer{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{
			SocketAddress: &corev3.SocketAddress{Address: fmt.Sprintf("203.0.113.%d", caller), PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 40000}},
		}}},
		Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{
			Method: "GET", Path: "/bench", Host: "bench.example", Scheme: "https", Protocol: "HTTP/2",
			Headers: map[string]string{
				":authority": "bench.example", ":method": "GET", ":path": "/bench", ":scheme": "https",
				"user-agent": "bench/1", "accept": "*/*", "accept-encoding": "gzip", "x-request-id": "0b0d3c1e-7f6d-4a77-9a13-5c5b2d0f7d11",
				"x-forwarded-proto": "https", "x-forwarded-for": fmt.Sprintf("203.0.113.%d", caller),
			},
		}},
	}}
}

// gets asks an HTTP server, one kept connection a caller.
func gets(o options, url string) (ask, func(), error) {
	transport := &http.Transport{MaxIdleConnsPerHost: o.callers, MaxConnsPerHost: o.callers}
	client := &http.Client{Transport: transport}
	return func(ctx context.Context, _ int) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d", answer.StatusCode)
		}
		return nil
	}, transport.CloseIdleConnections, nil
}
