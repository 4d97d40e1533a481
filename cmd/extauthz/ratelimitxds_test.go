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

// asEnvoyGateway is what Envoy Gateway runs its Deployment with, apart from
// where it listens.
func asEnvoyGateway(server string, redis *servers.Server, c *servers.Certificates) []string {
	return []string{
		"RUNTIME_ROOT=/data", "RUNTIME_SUBDIRECTORY=ratelimit", "RUNTIME_IGNOREDOTFILES=true", "RUNTIME_WATCH_ROOT=false",
		"LOG_LEVEL=info", "USE_STATSD=false", "CONFIG_TYPE=GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_SERVER_URL=" + server, "CONFIG_GRPC_XDS_NODE_ID=envoy-ratelimit",
		"GRPC_SERVER_USE_TLS=true", "GRPC_SERVER_TLS_CERT=" + c.CertFile, "GRPC_SERVER_TLS_KEY=" + c.KeyFile, "GRPC_SERVER_TLS_CA_CERT=" + c.CAFile,
		"CONFIG_GRPC_XDS_SERVER_USE_TLS=true", "CONFIG_GRPC_XDS_CLIENT_TLS_CERT=" + c.CertFile, "CONFIG_GRPC_XDS_CLIENT_TLS_KEY=" + c.KeyFile,
		"CONFIG_GRPC_XDS_SERVER_TLS_CACERT=" + c.CAFile, "FORCE_START_WITHOUT_INITIAL_CONFIG=true",
		"REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + redis.Addr, "REDIS_TLS=true", "REDIS_TLS_CLIENT_CERT=" + c.CertFile, "REDIS_TLS_CLIENT_KEY=" + c.KeyFile,
		"REDIS_TLS_CACERT=" + c.CAFile, "REDIS_TIMEOUT=10s", // the authority is the test's own, and the machine may be busy
		"USE_PROMETHEUS=true", "PROMETHEUS_ADDR=127.0.0.1:0", "PROMETHEUS_MAPPER_YAML=/etc/statsd-exporter/conf.yaml",
	}
}

func dialWith(t *testing.T, target string, c *tls.Config) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(credentials.NewTLS(c)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
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
	redis := servers.Start(t, servers.Redis, servers.Options{Certificates: c})
	d := startRatelimit(t, asEnvoyGateway(manageByTLS(t, c, cache), redis, c)...)
	d.conn = dialWith(t, d.grpc, c.Client())
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
	if warnings := d.log.lines(`"a variable is not used as it is"`); len(warnings) == 0 || strings.Contains(strings.Join(warnings, ""), `"level":"WARN"`) {
		t.Errorf("the log says of Envoy Gateway's variables %q, want no warning", warnings)
	}
	if _, body := fetch(t, d.prometheus+"/metrics", ""); !strings.Contains(body, `ratelimit_service_rate_limit_total_hits{domain="default/eg/http",key1="a"}`) {
		t.Errorf("the metrics do not tell of the limit:\n%.2000s", body)
	}
	if _, body := fetch(t, d.prometheus+"/metrics", ""); !strings.Contains(body, "ratelimit_service_config_load_success 2") || !strings.Contains(body, "ratelimit_service_config_load_error 1") {
		t.Errorf("the metrics do not tell of 2 configurations and 1 error:\n%.2000s", body)
	}
}
