package ratelimit

import (
	"strconv"
	"strings"
	"time"
)

// Redis is which servers keep the buckets.
type Redis struct {
	// URL is as the store wants it, without secrets.
	URL                string
	Username, Password string
	SentinelUsername   string
	SentinelPassword   string
	PoolSize           int
	// Timeout is 0 where nothing is said.
	Timeout time.Duration
	// CACert, Cert and Key are files, for TLS; "" for none.
	CACert, Cert, Key string
	// AnyName takes the certificate of a server whatever the name in it.
	AnyName bool

	kind, socket, addr string
	tls                bool
}

// Encrypted says that Redis is spoken to by TLS.
func (r *Redis) Encrypted() bool { return r.tls }

func redisText(of func(*Redis) *string) setter {
	return func(l *loader, v string) string { *of(&l.redis) = v; return "" }
}

func redisTruth(of func(*Redis) *bool) setter {
	return func(l *loader, v string) string {
		b, err := strconv.ParseBool(v)
		if err != nil {
			return "true or false"
		}
		*of(&l.redis) = b
		return ""
	}
}

// auth reads password, or user:password.
func auth(user, password func(*Redis) *string) setter {
	return func(l *loader, v string) string {
		name, secret, ok := strings.Cut(v, ":")
		if !ok {
			name, secret = "", v
		}
		*user(&l.redis), *password(&l.redis) = name, secret
		return ""
	}
}

var redisVariables = []variable{
	{name: "REDIS_SOCKET_TYPE", standard: "unix", into: func(l *loader, v string) string {
		l.redis.socket = strings.ToLower(v)
		if l.redis.socket != "unix" && l.redis.socket != "tcp" && l.redis.socket != "tls" {
			return "unix or tcp"
		}
		return ""
	}},
	{name: "REDIS_TYPE", standard: "SINGLE", into: func(l *loader, v string) string {
		l.redis.kind = strings.ToUpper(v)
		if k := l.redis.kind; k != "SINGLE" && k != "SENTINEL" && k != "CLUSTER" {
			return "SINGLE, SENTINEL or CLUSTER"
		}
		return ""
	}},
	{name: "REDIS_URL", secret: true, into: redisText(func(r *Redis) *string { return &r.addr })},
	{name: "REDIS_POOL_SIZE", standard: "10", into: func(l *loader, v string) string {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			return "a whole number of at least 1"
		}
		l.redis.PoolSize = n
		return ""
	}},
	{name: "REDIS_AUTH", secret: true, into: auth(func(r *Redis) *string { return &r.Username }, func(r *Redis) *string { return &r.Password })},
	{name: "REDIS_SENTINEL_AUTH", secret: true, into: auth(func(r *Redis) *string { return &r.SentinelUsername }, func(r *Redis) *string { return &r.SentinelPassword })},
	{name: "REDIS_TLS", into: redisTruth(func(r *Redis) *bool { return &r.tls })},
	{name: "REDIS_TLS_CLIENT_CERT", into: redisText(func(r *Redis) *string { return &r.Cert })},
	{name: "REDIS_TLS_CLIENT_KEY", into: redisText(func(r *Redis) *string { return &r.Key })},
	{name: "REDIS_TLS_CACERT", into: redisText(func(r *Redis) *string { return &r.CACert })},
	{name: "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", into: redisTruth(func(r *Redis) *bool { return &r.AnyName })},
	{name: "REDIS_TIMEOUT", into: func(l *loader, v string) string {
		d, err := time.ParseDuration(v)
		if err != nil || d <= 0 {
			return "a duration such as 25ms"
		}
		l.redis.Timeout = d
		return ""
	}},
}

// finishRedis makes a URL of the parts, if one is asked for.
func (l *loader) finishRedis() {
	r := &l.redis
	if r.addr == "" {
		l.note("REDIS_URL", "it is not set: buckets are in memory, and each replica has its own")
		return
	}
	l.s.Redis = r
	r.tls = r.tls || r.socket == "tls"
	if strings.Contains(r.addr, "://") {
		r.URL = r.addr
		r.tls = r.tls || strings.HasPrefix(r.addr, "rediss")
		return
	}
	scheme := "redis"
	if r.tls {
		scheme = "rediss"
	}
	switch r.kind {
	case "CLUSTER":
		r.URL = scheme + "+cluster://" + r.addr
	case "SENTINEL":
		l.sentinel(scheme)
	default:
		l.single(scheme)
	}
}

// sentinel reads the primary's name and then where the sentinels are.
func (l *loader) sentinel(scheme string) {
	name, rest, ok := strings.Cut(l.redis.addr, ",")
	if !ok || name == "" || rest == "" {
		l.fault("REDIS_URL", "a value that is not shown", "the primary's name and the sentinels, with commas between: mymaster,host:port,host:port")
		return
	}
	l.redis.URL = scheme + "+sentinel://" + rest + "/" + name
}

// single takes what is no path for an address, whatever the type of socket.
func (l *loader) single(scheme string) {
	r := &l.redis
	if r.socket != "unix" {
		r.URL = scheme + "://" + r.addr
		return
	}
	if strings.HasPrefix(r.addr, "/") {
		r.URL = "unix://" + r.addr
		return
	}
	l.warning("REDIS_SOCKET_TYPE", "it is unix, and REDIS_URL is no path: it is taken for an address")
	r.URL = scheme + "://" + r.addr
}
