package server

import (
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
)

// The services by their full names, by which health is asked for them.
const (
	AuthzName     = "envoy.service.auth.v3.Authorization"
	RateLimitName = "envoy.service.ratelimit.v3.RateLimitService"
)

// Authz returns the service of ext_authz, answered by s.
func Authz(s authv3.AuthorizationServer) Service {
	return Service{
		Name:     AuthzName,
		Register: func(r grpc.ServiceRegistrar) { r.RegisterService(onWire(authv3.Authorization_ServiceDesc, s), s) },
	}
}

// RateLimit returns the service of the rate limit filter, answered by s.
func RateLimit(s rlsv3.RateLimitServiceServer) Service {
	return Service{
		Name:     RateLimitName,
		Register: func(r grpc.ServiceRegistrar) { r.RegisterService(onWire(rlsv3.RateLimitService_ServiceDesc, s), s) },
	}
}
