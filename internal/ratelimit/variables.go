package ratelimit

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-mesh/sluice/internal/spelling"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// A variable is one name in the environment.
type variable struct {
	name     string
	standard string // what it is where nothing is said
	into     setter
	unneeded string // why nothing comes of it
	missing  string // what does not come of it, where it is asked for
	secret   bool
	empty    bool // an empty value is one
}

// A setter reads a value, or returns what it should have been.
type setter func(l *loader, value string) (want string)

func text(of func(*Settings) *string) setter {
	return func(l *loader, v string) string { *of(&l.s) = v; return "" }
}

func truth(of func(*Settings) *bool) setter {
	return func(l *loader, v string) string {
		b, err := strconv.ParseBool(v)
		if err != nil {
			return "true or false"
		}
		*of(&l.s) = b
		return ""
	}
}

func port(of func(*Settings) *int) setter {
	return func(l *loader, v string) string {
		n, err := strconv.ParseUint(v, 10, 16)
		if err != nil {
			return "a port, from 0 to 65535"
		}
		*of(&l.s) = int(n)
		return ""
	}
}

func duration(of func(*Settings) *time.Duration) setter {
	return func(l *loader, v string) string {
		d, err := time.ParseDuration(v)
		if err != nil || d < 0 {
			return "a duration such as 10s"
		}
		*of(&l.s) = d
		return ""
	}
}

func fraction(of func(*Settings) *float64) setter {
	return func(l *loader, v string) string {
		f, err := strconv.ParseFloat(v, 64)
		if err != nil || f < 0 || f > 1 {
			return "a number from 0 to 1"
		}
		*of(&l.s) = f
		return ""
	}
}

// pairs reads a:b,c:d.
func pairs(text string) (map[string]string, bool) {
	all := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			continue
		}
		key, value, ok := strings.Cut(part, ":")
		if !ok || key == "" {
			return nil, false
		}
		all[key] = value
	}
	return all, true
}

func oneOf(of func(*Settings) *string, words ...string) setter {
	return func(l *loader, v string) string {
		v = strings.ToLower(v)
		if !slices.Contains(words, v) {
			return strings.Join(words, ", ")
		}
		*of(&l.s) = v
		return ""
	}
}

// Why some variables are not needed.
const (
	noMemcache = "there is no memcache here: buckets are in Redis, or in memory"
	noPipeline = "calls of Redis are gathered by themselves when they are many"
	noSecond   = "there is no second Redis: limits of a second are in that of REDIS_URL, with all others"
	noTracing  = "there is no tracing here"
	noMapper   = "the metrics have the names and labels of the mapping that is built in"
	noWaiting  = "it serves at once, and goes by SLUICE_ON_ERROR until Redis answers"
	noMogrify  = "names are not rewritten"
)

// variables are all that are known, in the order in which they are read.
var variables = slices.Concat(listeners, sources, sinks, limiters, redisVariables, missing, unneeded())

var listeners = []variable{
	{name: "HOST", standard: "0.0.0.0", into: text(func(s *Settings) *string { return &s.Host })},
	{name: "PORT", standard: "8080", into: port(func(s *Settings) *int { return &s.Port })},
	{name: "GRPC_HOST", standard: "0.0.0.0", into: text(func(s *Settings) *string { return &s.GRPCHost })},
	{name: "GRPC_PORT", standard: "8081", into: port(func(s *Settings) *int { return &s.GRPCPort })},
	{name: "GRPC_UDS", into: text(func(s *Settings) *string { return &s.GRPCUDS })},
	{name: "DEBUG_HOST", standard: "0.0.0.0", into: text(func(s *Settings) *string { return &s.DebugHost })},
	{name: "DEBUG_PORT", standard: "6070", into: port(func(s *Settings) *int { return &s.DebugPort })},
	{name: "GRPC_MAX_CONNECTION_AGE", standard: "24h", into: duration(func(s *Settings) *time.Duration { return &s.MaxConnectionAge })},
	{name: "GRPC_MAX_CONNECTION_AGE_GRACE", standard: "1h", into: duration(func(s *Settings) *time.Duration { return &s.ConnectionAgeGrace })},
	{name: "GRPC_SERVER_USE_TLS", into: truth(func(s *Settings) *bool { return &s.ServerTLS })},
	{name: "GRPC_SERVER_TLS_CERT", into: text(func(s *Settings) *string { return &s.ServerTLSCert })},
	{name: "GRPC_SERVER_TLS_KEY", into: text(func(s *Settings) *string { return &s.ServerTLSKey })},
	{name: "GRPC_CLIENT_TLS_CACERT", into: text(func(s *Settings) *string { return &s.ClientTLSCACert })},
	{name: "GRPC_CLIENT_TLS_SAN", into: text(func(s *Settings) *string { return &s.ClientTLSSAN })},
	{name: "LOG_LEVEL", standard: "warn", into: logLevel},
	{name: "LOG_FORMAT", standard: "text", into: oneOf(func(s *Settings) *string { return &s.LogFormat }, "text", "json")},
}

// logLevel reads one of the levels that logrus has.
func logLevel(l *loader, v string) string {
	level, ok := map[string]string{
		"trace": "debug", "debug": "debug", "info": "info", "warn": "warn", "warning": "warn", "error": "error", "fatal": "error", "panic": "error",
	}[strings.ToLower(v)]
	if !ok {
		return "debug, info, warn or error"
	}
	l.s.LogLevel = level
	return ""
}

var sources = []variable{
	{name: "CONFIG_TYPE", standard: "FILE", into: func(l *loader, v string) string {
		l.s.XDS = v == "GRPC_XDS_SOTW"
		if !l.s.XDS && v != "FILE" {
			return "FILE or GRPC_XDS_SOTW"
		}
		return ""
	}},
	{name: "RUNTIME_ROOT", standard: "/srv/runtime_data/current", into: text(func(s *Settings) *string { return &s.RuntimeRoot })},
	{name: "RUNTIME_SUBDIRECTORY", into: text(func(s *Settings) *string { return &s.RuntimeSubdirectory })},
	{name: "RUNTIME_APPDIRECTORY", standard: "config", empty: true, into: text(func(s *Settings) *string { return &s.RuntimeAppDirectory })},
	{name: "RUNTIME_IGNOREDOTFILES", into: truth(func(s *Settings) *bool { return &s.IgnoreDotfiles })},
	{name: "MERGE_DOMAIN_CONFIG", into: truth(func(s *Settings) *bool { return &s.MergeDomains })},
	{name: "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", into: truth(func(s *Settings) *bool { return &s.HealthyWhenLoaded })},
	{name: "REDIS_HEALTH_CHECK_ACTIVE_CONNECTION", into: truth(func(s *Settings) *bool { return &s.HealthByRedis })},
	{name: "CONFIG_GRPC_XDS_NODE_ID", standard: "default", into: text(func(s *Settings) *string { return &s.XDSServer.NodeID })},
	{name: "CONFIG_GRPC_XDS_NODE_METADATA", into: func(l *loader, v string) string {
		if !json.Valid([]byte(v)) {
			return "a JSON object"
		}
		l.s.XDSServer.NodeMetadata = v
		return ""
	}},
	{name: "CONFIG_GRPC_XDS_SERVER_URL", standard: "localhost:18000", into: text(func(s *Settings) *string { return &s.XDSServer.URL })},
	{name: "CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL", standard: "3s", into: duration(func(s *Settings) *time.Duration { return &s.XDSServer.RetryInterval })},
	{name: "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", secret: true, into: func(l *loader, v string) string {
		headers, ok := pairs(v)
		l.s.XDSServer.Headers = headers
		if !ok {
			return "name:value,name:value"
		}
		return ""
	}},
	{name: "CONFIG_GRPC_XDS_SERVER_USE_TLS", into: truth(func(s *Settings) *bool { return &s.XDSServer.TLS })},
	{name: "CONFIG_GRPC_XDS_CLIENT_TLS_CERT", into: text(func(s *Settings) *string { return &s.XDSServer.ClientCert })},
	{name: "CONFIG_GRPC_XDS_CLIENT_TLS_KEY", into: text(func(s *Settings) *string { return &s.XDSServer.ClientKey })},
	{name: "CONFIG_GRPC_XDS_SERVER_TLS_CACERT", into: text(func(s *Settings) *string { return &s.XDSServer.CACert })},
	{name: "CONFIG_GRPC_XDS_SERVER_TLS_SAN", into: text(func(s *Settings) *string { return &s.XDSServer.SAN })},
	{name: "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", standard: "10s", into: duration(func(s *Settings) *time.Duration { return &s.XDSServer.Backoff.Initial })},
	{name: "XDS_CLIENT_BACKOFF_MAX_INTERVAL", standard: "60s", into: duration(func(s *Settings) *time.Duration { return &s.XDSServer.Backoff.Max })},
	{name: "XDS_CLIENT_BACKOFF_RANDOM_FACTOR", standard: "0.5", into: fraction(func(s *Settings) *float64 { return &s.XDSServer.Backoff.Factor })},
	{name: "XDS_CLIENT_BACKOFF_JITTER", standard: "true", into: truth(func(s *Settings) *bool { return &s.XDSServer.Backoff.Jitter })},
	{name: "XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES", into: func(l *loader, v string) string {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return "a number of bytes"
		}
		l.s.XDSServer.MaxMessage = n
		return ""
	}},
}

var sinks = []variable{
	{name: "USE_STATSD", standard: "true", into: truth(func(s *Settings) *bool { return &s.Statsd })},
	{name: "STATSD_HOST", standard: "localhost", into: text(func(s *Settings) *string { return &s.StatsdHost })},
	{name: "STATSD_PORT", standard: "8125", into: port(func(s *Settings) *int { return &s.StatsdPort })},
	{name: "STATS_FLUSH_INTERVAL", standard: "10s", into: duration(func(s *Settings) *time.Duration { return &s.FlushInterval })},
	{name: "EXTRA_TAGS", into: func(l *loader, v string) string {
		tags, ok := pairs(v)
		if !ok {
			return "name:value,name:value"
		}
		for name, value := range tags {
			l.s.ExtraTags = append(l.s.ExtraTags, name+":"+value)
		}
		slices.Sort(l.s.ExtraTags)
		return ""
	}},
	{name: "DISABLE_STATS", into: truth(func(s *Settings) *bool { return &s.statsDisabled })},
	{name: "USE_PROMETHEUS", into: truth(func(s *Settings) *bool { return &s.Prometheus })},
	{name: "PROMETHEUS_ADDR", standard: ":9090", into: text(func(s *Settings) *string { return &s.PrometheusAddr })},
	{name: "PROMETHEUS_PATH", standard: "/metrics", into: text(func(s *Settings) *string { return &s.PrometheusPath })},
	{name: "NEAR_LIMIT_RATIO", standard: "0.8", into: fraction(func(s *Settings) *float64 { return &s.NearLimitRatio })},
}

var limiters = []variable{
	{name: "CACHE_KEY_PREFIX", into: text(func(s *Settings) *string { return &s.KeyPrefix })},
	{name: "LOCAL_CACHE_SIZE_IN_BYTES", into: func(l *loader, v string) string {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < 0 {
			return "a number of bytes, or 0 for none"
		}
		l.s.LocalCache = &n
		return ""
	}},
	{name: "SHADOW_MODE", into: truth(func(s *Settings) *bool { return &s.Shadow })},
	{name: "QUOTA_MODE", into: truth(func(s *Settings) *bool { return &s.Quota })},
	{name: "RESPONSE_DYNAMIC_METADATA", into: truth(func(s *Settings) *bool { return &s.Metadata })},
	{name: "LIMIT_RESPONSE_HEADERS_ENABLED", into: truth(func(s *Settings) *bool { return &s.Headers })},
	{name: "LIMIT_LIMIT_HEADER", standard: "RateLimit-Limit", into: text(func(s *Settings) *string { return &s.LimitHeader })},
	{name: "LIMIT_REMAINING_HEADER", standard: "RateLimit-Remaining", into: text(func(s *Settings) *string { return &s.Remaining })},
	{name: "LIMIT_RESET_HEADER", standard: "RateLimit-Reset", into: text(func(s *Settings) *string { return &s.Reset })},
	{name: "BACKEND_TYPE", standard: "redis", into: func(_ *loader, v string) string {
		if v != "redis" {
			return "redis: " + noMemcache
		}
		return ""
	}},
	{name: "SLUICE_ADMIN_HOSTS", into: func(l *loader, v string) string {
		for name := range strings.SplitSeq(v, ",") {
			l.s.AdminHosts = append(l.s.AdminHosts, strings.TrimSpace(name))
		}
		return ""
	}},
	{name: "SLUICE_ON_ERROR", into: func(l *loader, v string) string {
		word, ok := map[string]policy.OnError{"local": policy.Local, "allow": policy.Allow, "deny": policy.Deny503}[v]
		if !ok {
			return "local, allow or deny"
		}
		l.s.OnError = word
		return ""
	}},
}

// missing are variables of which nothing comes, though what they ask for would
// be noticed.
var missing = []variable{
	{name: "REDIS_PERSECOND", missing: noSecond},
	{name: "TRACING_ENABLED", missing: noTracing},
	{name: "USE_DOG_STATSD", missing: "statistics are sent by statsd over TCP, with the names of envoyproxy/ratelimit and EXTRA_TAGS"},
	{name: "USE_DOG_STATSD_MOGRIFIERS", missing: noMogrify},
	{name: "PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS", missing: "response times are in seconds"},
}

// unneeded are variables that are known and of which nothing comes.
func unneeded() []variable {
	why := map[string][]string{
		"buckets are dropped once they are full, and not at random":                 {"EXPIRATION_JITTER_MAX_SECONDS"},
		"a denied request is never counted":                                         {"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT"},
		"both a link that is swapped and files that change are seen":                {"RUNTIME_WATCH_ROOT"},
		"it always starts, and answers with errors until a configuration is loaded": {"FORCE_START_WITHOUT_INITIAL_CONFIG"},
		"whose certificates are asked for is in GRPC_CLIENT_TLS_CACERT":             {"GRPC_SERVER_TLS_CA_CERT"},
		noMapper:   {"PROMETHEUS_MAPPER_YAML"},
		noPipeline: {"REDIS_PIPELINE_WINDOW", "REDIS_PIPELINE_LIMIT", "REDIS_CLUSTER_PIPELINE_PARALLELISM", "REDIS_POOL_ON_EMPTY_BEHAVIOR"},
		noWaiting:  {"REDIS_STARTUP_INITIAL_INTERVAL", "REDIS_STARTUP_MAX_INTERVAL", "REDIS_STARTUP_MAX_ELAPSED_TIME"},
		noTracing:  {"TRACING_EXPORTER_PROTOCOL", "TRACING_SERVICE_NAME", "TRACING_SERVICE_NAMESPACE", "TRACING_SERVICE_INSTANCE_ID", "TRACING_SAMPLING_RATE"},
		noMemcache: {
			"MEMCACHE_HOST_PORT", "MEMCACHE_SRV", "MEMCACHE_SRV_REFRESH", "MEMCACHE_MAX_IDLE_CONNS", "MEMCACHE_TLS",
			"MEMCACHE_TLS_CLIENT_CERT", "MEMCACHE_TLS_CLIENT_KEY", "MEMCACHE_TLS_CACERT", "MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION",
		},
		noSecond: {
			"REDIS_PERSECOND_SOCKET_TYPE", "REDIS_PERSECOND_TYPE", "REDIS_PERSECOND_URL", "REDIS_PERSECOND_POOL_SIZE",
			"REDIS_PERSECOND_AUTH", "REDIS_PERSECOND_SENTINEL_AUTH", "REDIS_PERSECOND_TLS", "REDIS_PERSECOND_TIMEOUT", "REDIS_PERSECOND_PIPELINE_WINDOW",
			"REDIS_PERSECOND_PIPELINE_LIMIT", "REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM", "REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR",
		},
	}
	var all []variable
	for text, names := range why {
		for _, name := range names {
			all = append(all, variable{name: name, unneeded: text})
		}
	}
	slices.SortFunc(all, func(a, b variable) int { return strings.Compare(a.name, b.name) })
	return all
}

// families are what names begin with that are probably meant for us.
var families = []string{
	"CACHE_", "CONFIG_GRPC_XDS_", "CONFIG_TYPE", "DEBUG_", "DOG_STATSD_", "EXPIRATION_", "GRPC_CLIENT_TLS_", "GRPC_MAX_", "GRPC_PORT", "GRPC_SERVER_", "GRPC_UDS",
	"LIMIT_", "LOCAL_CACHE_", "MEMCACHE_", "MERGE_DOMAIN", "NEAR_LIMIT_", "PROMETHEUS_", "REDIS_", "RUNTIME_", "STATSD_", "STATS_", "TRACING_", "USE_",
	"XDS_CLIENT_",
}

// serviceVariable matches what Kubernetes adds for Services that are called
// redis or statsd.
var serviceVariable = regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)$`)

// strangers notes variables that look like ours and are not known.
func (l *loader) strangers(environ []string) {
	var known []string
	for _, v := range variables {
		known = append(known, v.name)
	}
	for _, line := range environ {
		name, _, _ := strings.Cut(line, "=")
		if strings.HasPrefix(name, "OTEL_") {
			l.note(name, noTracing)
		}
		ours := slices.ContainsFunc(families, func(f string) bool { return strings.HasPrefix(name, f) })
		if ours && !slices.Contains(known, name) && !serviceVariable.MatchString(name) {
			l.warning(name, "no such variable is known"+spelling.DidYouMean(name, known))
		}
	}
}
