package ratelimit_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/internal/ratelimit"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

func Example() {
	s, notes, err := ratelimit.Load([]string{"RUNTIME_ROOT=/etc/limits", "REDIS_SOCKET_TYPE=tcp", "REDIS_URL=redis:6379", "REDIS_PIPELINE_WINDOW=1ms"})
	fmt.Println(s.Folder(), s.Redis.URL, err)
	for _, n := range notes {
		fmt.Println(n.Variable+":", n.Text)
	}
	// Output:
	// /etc/limits/config redis://redis:6379 <nil>
	// REDIS_PIPELINE_WINDOW: calls of Redis are gathered by themselves when they are many
}

func TestLoadDefaults(t *testing.T) {
	t.Parallel()
	s, notes, err := ratelimit.Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	grpc, http, debug := s.Addresses()
	got := []any{
		grpc, http, debug, s.MaxConnectionAge, s.LogLevel, s.LogFormat, s.Folder(), s.XDS, s.Redis, s.OnError, s.Headers, s.LimitHeader, s.Remaining, s.Reset,
		s.Statsd, s.StatsdHost, s.StatsdPort, s.FlushInterval, s.Prometheus, s.PrometheusAddr, s.PrometheusPath, s.NearLimitRatio,
		s.XDSServer.URL, s.XDSServer.NodeID, s.XDSServer.RetryInterval, s.XDSServer.Backoff,
	}
	want := []any{
		"0.0.0.0:8081", "0.0.0.0:8080", "0.0.0.0:6070", 24 * time.Hour, "warn", "text", "/srv/runtime_data/current/config", false, (*ratelimit.Redis)(nil), policy.Local,
		false, "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset",
		true, "localhost", 8125, 10 * time.Second, false, ":9090", "/metrics", 0.8,
		"localhost:18000", "default", 3 * time.Second,
		ratelimit.Backoff{Initial: 10 * time.Second, Max: time.Minute, Factor: 0.5, Jitter: true},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b *ratelimit.Redis) bool { return a == b })); diff != "" {
		t.Errorf("Load(nothing) (-want +got):\n%s", diff)
	}
	if len(notes) != 1 || notes[0].Variable != "REDIS_URL" {
		t.Errorf("Load(nothing) = notes %v, want one, of REDIS_URL", notes)
	}
}

func TestLoadRedis(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ environ, url string }{
		{"REDIS_SOCKET_TYPE=unix REDIS_URL=/run/redis.sock", "unix:///run/redis.sock"},
		{"REDIS_URL=/run/redis.sock", "unix:///run/redis.sock"},
		{"REDIS_URL=redis:6379", "redis://redis:6379"},
		{"REDIS_SOCKET_TYPE=tcp REDIS_URL=redis:6379", "redis://redis:6379"},
		{"REDIS_SOCKET_TYPE=tcp REDIS_URL=redis:6379 REDIS_TLS=true", "rediss://redis:6379"},
		{"REDIS_SOCKET_TYPE=tls REDIS_URL=redis:6379", "rediss://redis:6379"},
		{"REDIS_SOCKET_TYPE=tcp REDIS_TYPE=cluster REDIS_URL=a:1,b:2", "redis+cluster://a:1,b:2"},
		{"REDIS_SOCKET_TYPE=tcp REDIS_TYPE=CLUSTER REDIS_URL=a:1,b:2 REDIS_TLS=true", "rediss+cluster://a:1,b:2"},
		{"REDIS_SOCKET_TYPE=tcp REDIS_TYPE=SENTINEL REDIS_URL=mymaster,a:1,b:2", "redis+sentinel://a:1,b:2/mymaster"},
		{"REDIS_URL=rediss://redis:6379/3", "rediss://redis:6379/3"},
	} {
		s, _, err := ratelimit.Load(strings.Fields(test.environ))
		if err != nil || s.Redis.URL != test.url {
			t.Errorf("Load(%s) = %+v, %v, want %s", test.environ, s.Redis, err, test.url)
		}
	}
	for _, test := range []struct{ auth, user, password string }{{"secret", "", "secret"}, {"me:secret", "me", "secret"}, {"me:se:cret", "me", "se:cret"}} {
		s, _, err := ratelimit.Load([]string{"REDIS_URL=a:1", "REDIS_AUTH=" + test.auth, "REDIS_SENTINEL_AUTH=" + test.auth})
		if r := s.Redis; err != nil || r.Username != test.user || r.Password != test.password || r.SentinelUsername != test.user || r.SentinelPassword != test.password {
			t.Errorf("Load(REDIS_AUTH=%s) = %+v, %v, want %q, %q", test.auth, s.Redis, err, test.user, test.password)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"PORT=http":                                        `PORT: found "http", want a port, from 0 to 65535`,
		"SHADOW_MODE=maybe":                                `SHADOW_MODE: found "maybe", want true or false`,
		"GRPC_MAX_CONNECTION_AGE=1":                        `GRPC_MAX_CONNECTION_AGE: found "1", want a duration such as 10s`,
		"NEAR_LIMIT_RATIO=2":                               `NEAR_LIMIT_RATIO: found "2", want a number from 0 to 1`,
		"BACKEND_TYPE=memcache":                            `BACKEND_TYPE: found "memcache", want redis: there is no memcache here: buckets are in Redis, or in memory`,
		"CONFIG_TYPE=ETCD":                                 `CONFIG_TYPE: found "ETCD", want FILE or GRPC_XDS_SOTW`,
		"LOG_LEVEL=loud":                                   `LOG_LEVEL: found "loud", want debug, info, warn or error`,
		"SLUICE_ON_ERROR=panic":                            `SLUICE_ON_ERROR: found "panic", want local, allow or deny`,
		"REDIS_TIMEOUT=0s":                                 `REDIS_TIMEOUT: found "0s", want a duration such as 25ms`,
		"CONFIG_GRPC_XDS_NODE_METADATA={":                  `CONFIG_GRPC_XDS_NODE_METADATA: found "{", want a JSON object`,
		"GRPC_SERVER_USE_TLS=true":                         `GRPC_SERVER_USE_TLS: found true without files, want GRPC_SERVER_TLS_CERT and GRPC_SERVER_TLS_KEY too`,
		"CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS=secret": `CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: found a value that is not shown, want name:value,name:value`,
	} {
		if _, _, err := ratelimit.Load([]string{line}); err == nil || err.Error() != want {
			t.Errorf("Load(%s) = %v, want %s", line, err, want)
		}
	}
}

// all are the variables that envoyproxy/ratelimit reads, with values other than
// its defaults.
const all = `
HOST=::1 PORT=1 GRPC_HOST=::1 GRPC_PORT=2 GRPC_UDS=/run/x DEBUG_HOST=::1 DEBUG_PORT=3
GRPC_MAX_CONNECTION_AGE=1h GRPC_MAX_CONNECTION_AGE_GRACE=1m GRPC_SERVER_USE_TLS=true GRPC_SERVER_TLS_CERT=c GRPC_SERVER_TLS_KEY=k
GRPC_CLIENT_TLS_CACERT=a GRPC_CLIENT_TLS_SAN=s LOG_LEVEL=DEBUG LOG_FORMAT=json
CONFIG_TYPE=GRPC_XDS_SOTW FORCE_START_WITHOUT_INITIAL_CONFIG=true RUNTIME_ROOT=/r RUNTIME_SUBDIRECTORY=s RUNTIME_APPDIRECTORY=a
RUNTIME_IGNOREDOTFILES=true RUNTIME_WATCH_ROOT=false MERGE_DOMAIN_CONFIG=true
CONFIG_GRPC_XDS_NODE_ID=n CONFIG_GRPC_XDS_NODE_METADATA={} CONFIG_GRPC_XDS_SERVER_URL=h:1 CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL=1s
CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS=a:b CONFIG_GRPC_XDS_SERVER_USE_TLS=true CONFIG_GRPC_XDS_CLIENT_TLS_CERT=c
CONFIG_GRPC_XDS_CLIENT_TLS_KEY=k CONFIG_GRPC_XDS_SERVER_TLS_CACERT=a CONFIG_GRPC_XDS_SERVER_TLS_SAN=s
XDS_CLIENT_BACKOFF_INITIAL_INTERVAL=1s XDS_CLIENT_BACKOFF_MAX_INTERVAL=1s XDS_CLIENT_BACKOFF_RANDOM_FACTOR=0.1 XDS_CLIENT_BACKOFF_JITTER=false
XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES=1
USE_STATSD=false STATSD_HOST=h STATSD_PORT=4 STATS_FLUSH_INTERVAL=1s EXTRA_TAGS=a:b DISABLE_STATS=true USE_DOG_STATSD=true USE_DOG_STATSD_MOGRIFIERS=A
USE_PROMETHEUS=true PROMETHEUS_ADDR=:1 PROMETHEUS_PATH=/m PROMETHEUS_MAPPER_YAML=m PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS=true
EXPIRATION_JITTER_MAX_SECONDS=1 LOCAL_CACHE_SIZE_IN_BYTES=1 NEAR_LIMIT_RATIO=0.1 CACHE_KEY_PREFIX=p BACKEND_TYPE=memcache
STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=true SHADOW_MODE=true QUOTA_MODE=true RESPONSE_DYNAMIC_METADATA=true
LIMIT_RESPONSE_HEADERS_ENABLED=true LIMIT_LIMIT_HEADER=l LIMIT_REMAINING_HEADER=r LIMIT_RESET_HEADER=t
HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED=true REDIS_HEALTH_CHECK_ACTIVE_CONNECTION=true
REDIS_SOCKET_TYPE=tls REDIS_TYPE=CLUSTER REDIS_URL=h:2 REDIS_POOL_SIZE=3 REDIS_AUTH=x REDIS_SENTINEL_AUTH=x REDIS_TLS=true
REDIS_TLS_CLIENT_CERT=c REDIS_TLS_CLIENT_KEY=k REDIS_TLS_CACERT=a REDIS_TLS_SKIP_HOSTNAME_VERIFICATION=true REDIS_TIMEOUT=1s
REDIS_PIPELINE_WINDOW=1ms REDIS_PIPELINE_LIMIT=1 REDIS_CLUSTER_PIPELINE_PARALLELISM=2 REDIS_POOL_ON_EMPTY_BEHAVIOR=ERROR
REDIS_STARTUP_INITIAL_INTERVAL=2s REDIS_STARTUP_MAX_INTERVAL=2s REDIS_STARTUP_MAX_ELAPSED_TIME=2s
REDIS_PERSECOND=true REDIS_PERSECOND_SOCKET_TYPE=tcp REDIS_PERSECOND_TYPE=CLUSTER REDIS_PERSECOND_URL=h:3 REDIS_PERSECOND_POOL_SIZE=1
REDIS_PERSECOND_AUTH=x REDIS_PERSECOND_SENTINEL_AUTH=x REDIS_PERSECOND_TLS=true REDIS_PERSECOND_TIMEOUT=1s REDIS_PERSECOND_PIPELINE_WINDOW=1ms
REDIS_PERSECOND_PIPELINE_LIMIT=1 REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM=2 REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR=ERROR
MEMCACHE_HOST_PORT=h:1 MEMCACHE_SRV=s MEMCACHE_SRV_REFRESH=1s MEMCACHE_MAX_IDLE_CONNS=1 MEMCACHE_TLS=true MEMCACHE_TLS_CLIENT_CERT=c
MEMCACHE_TLS_CLIENT_KEY=k MEMCACHE_TLS_CACERT=a MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION=true
TRACING_ENABLED=true TRACING_EXPORTER_PROTOCOL=grpc TRACING_SERVICE_NAME=n TRACING_SERVICE_NAMESPACE=n TRACING_SERVICE_INSTANCE_ID=i
TRACING_SAMPLING_RATE=0.1 OTEL_EXPORTER_OTLP_ENDPOINT=http://h:4317`

// Whatever is said comes out in the settings, in a note, or as an error.
func TestLoadIgnoresNothing(t *testing.T) {
	t.Parallel()
	load := func(lines ...string) string {
		s, notes, err := ratelimit.Load(append([]string{"USE_STATSD=true", "USE_PROMETHEUS=false", "REDIS_URL=h:1", "REDIS_SOCKET_TYPE=tcp"}, lines...))
		return fmt.Sprintf("%#v %#v %#v %v %v", s, *s.Redis, s.LocalCache == nil, notes, err)
	}
	redis := regexp.MustCompile(`\(\*ratelimit.Redis\)\(0x[0-9a-f]+\)`) // where it is
	for _, line := range strings.Fields(all) {
		if redis.ReplaceAllString(load(line), "") == redis.ReplaceAllString(load(), "") {
			t.Errorf("Load(%s) is as without it, and says nothing", line)
		}
	}
}

func TestLoadNotes(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"REDIS_POOLSIZE=3":               "warning REDIS_POOLSIZE: no such variable is known; did you mean REDIS_POOL_SIZE?",
		"REDIS_PERSECOND_URLS=x":         "warning REDIS_PERSECOND_URLS: no such variable is known; did you mean REDIS_PERSECOND_URL?",
		"TRACING_ENABLED=true":           "warning TRACING_ENABLED: there is no tracing here",
		"TRACING_ENABLED=false":          "TRACING_ENABLED: it is as if it were not set: there is no tracing here",
		"OTEL_SERVICE_NAME=x":            "OTEL_SERVICE_NAME: there is no tracing here",
		"REDIS_PERSECOND=true":           "warning REDIS_PERSECOND: there is no second Redis: limits of a second are in that of REDIS_URL, with all others",
		"DOG_STATSD_MOGRIFIER_A_NAME=x":  "warning DOG_STATSD_MOGRIFIER_A_NAME: no such variable is known",
		"REDIS_PORT=tcp://10.0.0.1:6379": "", "REDIS_SERVICE_HOST=10.0.0.1": "", "REDIS_PORT_6379_TCP_ADDR=10.0.0.1": "",
		"HOME=/root": "", "PORT=80": "",
	} {
		_, notes, err := ratelimit.Load([]string{line})
		var got []string
		for _, n := range notes {
			if n.Variable == "REDIS_URL" {
				continue
			}
			text := n.Variable + ": " + n.Text
			if n.Warning {
				text = "warning " + text
			}
			got = append(got, text)
		}
		if err != nil || strings.Join(got, "\n") != want {
			t.Errorf("Load(%s) = notes %q, %v, want %q", line, got, err, want)
		}
	}
}

// Only one of two sinks is asked for by default, and the other by a word.
func TestLoadSinks(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		environ            string
		statsd, prometheus bool
	}{
		{"", true, false},
		{"USE_PROMETHEUS=true", false, true},
		{"USE_PROMETHEUS=true USE_STATSD=true", true, true},
		{"USE_STATSD=false", false, false},
		{"DISABLE_STATS=true", false, false},
		{"DISABLE_STATS=1 USE_PROMETHEUS=true", false, false},
	} {
		s, _, err := ratelimit.Load(strings.Fields(test.environ))
		if err != nil || s.Statsd != test.statsd || s.Prometheus != test.prometheus {
			t.Errorf("Load(%s) = statsd %v, prometheus %v, %v, want %v, %v", test.environ, s.Statsd, s.Prometheus, err, test.statsd, test.prometheus)
		}
	}
}

// What Envoy Gateway 1.9 runs its rate limit Deployment with.
var envoyGateway = []string{
	"RUNTIME_ROOT=/data", "RUNTIME_SUBDIRECTORY=ratelimit", "RUNTIME_IGNOREDOTFILES=true", "RUNTIME_WATCH_ROOT=false",
	"LOG_LEVEL=info", "USE_STATSD=false", "CONFIG_TYPE=GRPC_XDS_SOTW",
	"CONFIG_GRPC_XDS_SERVER_URL=envoy-gateway:18001", "CONFIG_GRPC_XDS_NODE_ID=envoy-ratelimit",
	"GRPC_SERVER_USE_TLS=true", "GRPC_SERVER_TLS_CERT=/certs/tls.crt", "GRPC_SERVER_TLS_KEY=/certs/tls.key", "GRPC_SERVER_TLS_CA_CERT=/certs/ca.crt",
	"CONFIG_GRPC_XDS_SERVER_USE_TLS=true", "CONFIG_GRPC_XDS_CLIENT_TLS_CERT=/certs/tls.crt", "CONFIG_GRPC_XDS_CLIENT_TLS_KEY=/certs/tls.key",
	"CONFIG_GRPC_XDS_SERVER_TLS_CACERT=/certs/ca.crt", "FORCE_START_WITHOUT_INITIAL_CONFIG=true",
	"REDIS_SOCKET_TYPE=tcp", "REDIS_URL=redis.redis.svc:6379", "REDIS_TLS=true",
	"REDIS_TLS_CLIENT_CERT=/redis-certs/tls.crt", "REDIS_TLS_CLIENT_KEY=/redis-certs/tls.key",
	"USE_PROMETHEUS=true", "PROMETHEUS_ADDR=:19001", "PROMETHEUS_MAPPER_YAML=/etc/statsd-exporter/conf.yaml",
}

// Nothing that Envoy Gateway says is doubtful, and its probes and Services find
// what they ask for.
func TestLoadEnvoyGateway(t *testing.T) {
	t.Parallel()
	s, notes, err := ratelimit.Load(envoyGateway)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range notes {
		if n.Warning {
			t.Errorf("Load(Envoy Gateway's) warns of %s: %s, want no warning", n.Variable, n.Text)
		}
	}
	grpc, http, _ := s.Addresses()
	got := []any{
		grpc, http, s.Prometheus, s.PrometheusAddr, s.PrometheusPath, s.Statsd, s.XDS, s.ServerTLS, s.ServerTLSCert, s.ServerTLSKey, s.ClientTLSCACert,
		s.XDSServer.URL, s.XDSServer.NodeID, s.XDSServer.TLS, s.XDSServer.ClientCert, s.XDSServer.ClientKey, s.XDSServer.CACert, s.Redis.URL, s.Redis.Cert,
	}
	want := []any{
		"0.0.0.0:8081", "0.0.0.0:8080", true, ":19001", "/metrics", false, true, true, "/certs/tls.crt", "/certs/tls.key", "",
		"envoy-gateway:18001", "envoy-ratelimit", true, "/certs/tls.crt", "/certs/tls.key", "/certs/ca.crt", "rediss://redis.redis.svc:6379", "/redis-certs/tls.crt",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Load(Envoy Gateway's) (-want +got):\n%s", diff)
	}
}
