package main

import (
	"crypto/tls"
	"net"
	"strings"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/sluice-mesh/sluice/test/servers"
)

// manageByTLS starts a management server that lets in only clients with a
// certificate, and returns where it is.
func manageByTLS(t *testing.T, c *servers.Certificates, cache cachev3.Cache) string {
	t.Helper()
	client := c.Client()
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: client.Certificates, ClientCAs: client.RootCAs, ClientAuth: tls.RequireAndVerifyClientCert,
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)))
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(s, serverv3.NewServer(t.Context(), cache, nil))
	served := make(chan struct{})
	go func() { defer close(served); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-served })
	return l.Addr().String()
}

// As Envoy Gateway runs its rate limit Deployment: limits over xDS by mTLS,
// health over HTTP, metrics for Prometheus.
func TestRatelimitOverXDS(t *testing.T) {
	t.Parallel()
	c, cache := servers.NewCertificates(t), cachev3.NewSnapshotCache(true, cachev3.IDHash{}, nil)
	say := func(version string, unit ratelimitv3.RateLimitUnit, n uint32) {
		t.Helper()
		s, err := cachev3.NewSnapshot(version, map[resource.Type][]types.Resource{resource.RateLimitConfigType: {&ratelimitv3.RateLimitConfig{
			Name: "default/eg/http", Domain: "default/eg/http", Descriptors: []*ratelimitv3.RateLimitDescriptor{{
				Key: "a", RateLimit: &ratelimitv3.RateLimitPolicy{Unit: unit, RequestsPerUnit: n},
			}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := cache.SetSnapshot(t.Context(), "envoy-ratelimit", s); err != nil {
			t.Fatal(err)
		}
	}
	d := startRatelimit(t,
		"CONFIG_TYPE=GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_SERVER_URL="+manageByTLS(t, c, cache), "CONFIG_GRPC_XDS_NODE_ID=envoy-ratelimit",
		"CONFIG_GRPC_XDS_SERVER_USE_TLS=true", "CONFIG_GRPC_XDS_CLIENT_TLS_CERT="+c.CertFile, "CONFIG_GRPC_XDS_CLIENT_TLS_KEY="+c.KeyFile,
		"CONFIG_GRPC_XDS_SERVER_TLS_CACERT="+c.CAFile, "USE_PROMETHEUS=true", "PROMETHEUS_ADDR=127.0.0.1:0",
	)
	if code, _ := fetch(t, d.http+"/healthcheck", ""); code != 200 {
		t.Errorf("GET /healthcheck = %d, want 200", code)
	}
	if _, err := d.ask(t, "default/eg/http", "a", "x"); status.Code(err) != codes.Unavailable {
		t.Errorf("ShouldRateLimit() before there are limits = %v, want Unavailable", err)
	}
	const domain = "default/eg/http"
	say("1", ratelimitv3.RateLimitUnit_DAY, 100)
	d.limitOf(t, domain, 100)
	say("2", ratelimitv3.RateLimitUnit(99), 7)
	d.log.await(t, "its domain stays as it was", 1)
	d.limitOf(t, domain, 100)
	say("3", ratelimitv3.RateLimitUnit_HOUR, 50)
	d.limitOf(t, domain, 50)
	if _, body := fetch(t, d.prometheus+"/metrics", ""); !strings.Contains(body, "ratelimit_service_config_load_success 2") || !strings.Contains(body, "ratelimit_service_config_load_error 1") {
		t.Errorf("the metrics do not tell of 2 configurations and 1 error:\n%.2000s", body)
	}
}
