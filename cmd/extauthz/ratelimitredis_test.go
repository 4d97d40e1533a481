package main

import (
	"net"
	"os"
	"strings"
	"testing"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-mesh/sluice/test/servers"
)

// share wants two replicas that are set up by environ to have one limit.
func share(t *testing.T, environ ...string) {
	t.Helper()
	dir := runtimeFolder(t, t.TempDir(), map[string]string{"config/one": limitFile("one", "1")})
	environ = append([]string{"RUNTIME_ROOT=" + dir, "REDIS_TIMEOUT=10s", "REDIS_HEALTH_CHECK_ACTIVE_CONNECTION=true"}, environ...)
	for i := range 2 {
		d := startRatelimit(t, environ...)
		resp, err := d.ask(t, "one", "a", "x")
		if over := resp.GetOverallCode() == rlsv3.RateLimitResponse_OVER_LIMIT; err != nil || over != (i == 1) {
			t.Errorf("replica %d: ShouldRateLimit() = %v, %v, want over %v", i, resp, err, i == 1)
		}
		if code, body := fetch(t, d.http+"/healthcheck", ""); code != 200 {
			t.Errorf("replica %d: GET /healthcheck = %d %s, want 200", i, code, body)
		}
		if text, _ := d.log.read(); strings.Contains(text, "s3cret") {
			t.Error("the log shows the password of Redis")
		}
	}
}

func addresses(all []*servers.Server) string {
	addrs := make([]string, len(all))
	for i, s := range all {
		addrs[i] = s.Addr
	}
	return strings.Join(addrs, ",")
}

func TestRatelimitRedisCluster(t *testing.T) {
	t.Parallel()
	c := servers.Cluster(t, servers.Redis, 3, servers.Options{Password: "s3cret"})
	share(t, "REDIS_SOCKET_TYPE=tcp", "REDIS_TYPE=CLUSTER", "REDIS_AUTH=s3cret", "REDIS_URL="+addresses(c.Primaries))
}

func TestRatelimitRedisSentinel(t *testing.T) {
	t.Parallel()
	w := servers.Sentinel(t, servers.Redis, servers.Options{Password: "s3cret"})
	share(t, "REDIS_SOCKET_TYPE=tcp", "REDIS_TYPE=SENTINEL", "REDIS_AUTH=s3cret", "REDIS_SENTINEL_AUTH=s3cret",
		"REDIS_URL="+servers.PrimaryName+","+addresses(w.Sentinels))
}

// The certificate is for 127.0.0.1, and localhost another name.
func TestRatelimitRedisByTLS(t *testing.T) {
	t.Parallel()
	c := servers.NewCertificates(t)
	s := servers.Start(t, servers.Redis, servers.Options{Certificates: c, Password: "s3cret"})
	_, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	environ := []string{
		"REDIS_SOCKET_TYPE=tcp", "REDIS_URL=localhost:" + port, "REDIS_AUTH=s3cret", "REDIS_TLS=true",
		"REDIS_TLS_CACERT=" + c.CAFile, "REDIS_TLS_CLIENT_CERT=" + c.CertFile, "REDIS_TLS_CLIENT_KEY=" + c.KeyFile,
	}
	share(t, append(environ, "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION=true")...)
	d := startRatelimit(t, append(environ, "RUNTIME_ROOT="+t.TempDir(), "REDIS_HEALTH_CHECK_ACTIVE_CONNECTION=true")...)
	if code, _ := fetch(t, d.http+"/healthcheck", ""); code != 500 {
		t.Errorf("GET /healthcheck with a Redis of another name = %d, want 500", code)
	}
}

// A certificate that is renewed is shown from the next connection on.
func TestRatelimitRedisRenews(t *testing.T) {
	t.Parallel()
	c, others := servers.NewCertificates(t), servers.NewCertificates(t)
	s := servers.Start(t, servers.Redis, servers.Options{Certificates: c})
	dir := t.TempDir()
	show := func(c *servers.Certificates) {
		copyFile(t, c.KeyFile, dir+"/key.pem")
		copyFile(t, c.CertFile, dir+"/cert.pem")
	}
	show(others)
	d := startRatelimit(
		t, "RUNTIME_ROOT="+t.TempDir(), "REDIS_HEALTH_CHECK_ACTIVE_CONNECTION=true", "REDIS_SOCKET_TYPE=tcp", "REDIS_URL="+s.Addr, "REDIS_TLS=true",
		"REDIS_TLS_CACERT="+c.CAFile, "REDIS_TLS_CLIENT_CERT="+dir+"/cert.pem", "REDIS_TLS_CLIENT_KEY="+dir+"/key.pem",
	)
	if code, _ := fetch(t, d.http+"/healthcheck", ""); code != 500 {
		t.Errorf("GET /healthcheck with a certificate that Redis does not believe = %d, want 500", code)
	}
	show(c)
	eventually(t, "Redis believes the new certificate", func() bool {
		code, _ := fetch(t, d.http+"/healthcheck", "")
		return code == 200
	})
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, to, string(text))
}

func TestRatelimitMutualTLS(t *testing.T) {
	t.Parallel()
	c, others := servers.NewCertificates(t), servers.NewCertificates(t)
	dir := runtimeFolder(t, t.TempDir(), map[string]string{"config/one": limitFile("one", "5")})
	environ := []string{
		"RUNTIME_ROOT=" + dir, "GRPC_SERVER_USE_TLS=true", "GRPC_SERVER_TLS_CERT=" + c.CertFile, "GRPC_SERVER_TLS_KEY=" + c.KeyFile,
		"GRPC_CLIENT_TLS_CACERT=" + others.CAFile,
	}
	d := startRatelimit(t, environ...)
	for name, shows := range map[string]*servers.Certificates{"its own authority's": c, "the one that is asked for": others} {
		config := c.Client()
		config.Certificates = shows.Client().Certificates
		d.conn = dialWith(t, d.grpc, config)
		_, err := d.ask(t, "one", "a", "x")
		if want := map[bool]codes.Code{true: codes.OK, false: codes.Unavailable}[shows == others]; status.Code(err) != want {
			t.Errorf("ShouldRateLimit() with a certificate of %s = %v, want %v", name, err, want)
		}
	}
	d = startRatelimit(t, append(environ, "GRPC_CLIENT_TLS_SAN=envoy.example.com")...)
	config := c.Client()
	config.Certificates = others.Client().Certificates
	d.conn = dialWith(t, d.grpc, config)
	if _, err := d.ask(t, "one", "a", "x"); status.Code(err) != codes.Unavailable {
		t.Errorf("ShouldRateLimit() without the name that is wanted = %v, want Unavailable", err)
	}
}
