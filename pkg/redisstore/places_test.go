package redisstore_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-mesh/sluice/pkg/redisstore"
	"github.com/sluice-mesh/sluice/test/servers"
)

// A place is servers that keep buckets, in one of the ways that there are.
type place struct {
	name  string
	start func(t *testing.T) running
	calls int // of each run of TestDifferential; 0 for those that TestStore makes
}

// A running place: how to reach it, and the servers that keep the buckets.
type running struct {
	options redisstore.Options
	servers []*servers.Server
	apart   bool // buckets may lie on different ones
}

// The Valkey of .tools has no TLS.
var places = []place{
	{"redis", alone(servers.Redis), 5_000},
	{"valkey", alone(servers.Valkey), 5_000},
	{"redis, TLS, RESP3 and a user of few rights", guarded, 0},
	{"redis cluster", together(servers.Redis, servers.Options{Password: "secret"}), 1000},
	{"valkey cluster", together(servers.Valkey, servers.Options{Replicas: 1}), 500},
	{"redis cluster, TLS, RESP3 and a user of few rights", togetherTLS, 0},
	{"redis sentinel", watched(servers.Redis, servers.Options{Password: "secret"}), 0},
	{"valkey sentinel", watched(servers.Valkey, servers.Options{}), 0},
}

func alone(kind servers.Kind) func(*testing.T) running {
	return func(t *testing.T) running {
		s := servers.Start(t, kind, servers.Options{Socket: true})
		return running{redisstore.Options{URL: s.URL()}, []*servers.Server{s}, false}
	}
}

// rights are those that the package asks for, for a test's keys.
var rights = []string{"on", ">s3cret", "~t*", "+evalsha", "+eval", "+time", "+mget", "+get", "+set", "+del", "+exists", "+ping", "+info"}

// guarded has no right but those.
func guarded(t *testing.T) running {
	certificates := servers.NewCertificates(t)
	s := servers.Start(t, servers.Redis, servers.Options{Certificates: certificates})
	s.Do(t, append([]string{"ACL", "SETUSER", "limiter"}, rights...)...)
	url := strings.Replace(s.URL(), "rediss://", "rediss://limiter@", 1) + "?protocol=3"
	return running{redisstore.Options{URL: url, Password: "s3cret", TLS: certificates.Client()}, []*servers.Server{s}, false}
}

func together(kind servers.Kind, o servers.Options) func(*testing.T) running {
	return func(t *testing.T) running {
		c := servers.Cluster(t, kind, 3, o)
		return running{redisstore.Options{URL: c.URL()}, c.Primaries, true}
	}
}

func togetherTLS(t *testing.T) running {
	certificates := servers.NewCertificates(t)
	c := servers.Cluster(t, servers.Redis, 3, servers.Options{Certificates: certificates})
	for _, s := range c.Primaries {
		s.Do(t, append([]string{"ACL", "SETUSER", "limiter", "+cluster|slots", "+asking"}, rights...)...)
	}
	o := redisstore.Options{URL: c.URL() + "?protocol=3", Username: "limiter", Password: "s3cret", TLS: certificates.Client()}
	return running{o, c.Primaries, true}
}

func watched(kind servers.Kind, o servers.Options) func(*testing.T) running {
	return func(t *testing.T) running {
		w := servers.Sentinel(t, kind, o)
		return running{redisstore.Options{URL: w.URL(), SentinelPassword: o.Password}, []*servers.Server{w.Primary}, false}
	}
}

// client returns a client for what a Store does not do.
func client(t *testing.T, server *servers.Server) *redis.Client {
	t.Helper()
	o := &redis.Options{Addr: server.Addr, Password: server.Options().Password, Protocol: 2, DisableIdentity: true}
	if c := server.Options().Certificates; c != nil {
		o.TLSConfig = c.Client()
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}
