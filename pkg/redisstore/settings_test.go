package redisstore_test

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/redisstore"
	"github.com/sluice-mesh/sluice/test/servers"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		options redisstore.Options
		want    string
	}{
		{"no URL", redisstore.Options{}, "redis URL: it is missing"},
		{"no scheme", redisstore.Options{URL: "localhost:6379"}, "it begins with none of redis://, rediss://, unix://, "},
		{"other scheme", redisstore.Options{URL: "http://:secret@host"}, "it begins with none of"},
		{"several", redisstore.Options{URL: "redis://:secret@a:1,b:2/0"}, "it names several servers, want one, or redis+cluster://"},
		{"cluster without a host", redisstore.Options{URL: "redis+cluster://:secret@"}, "one of its servers has no host"},
		{"cluster with an empty host", redisstore.Options{URL: "redis+cluster://:secret@a:1,,b:2"}, "one of its servers has no host"},
		{"cluster with a second user", redisstore.Options{URL: "redis+cluster://:secret@a:1,:secret@b:2"}, "it has more than one @"},
		{"cluster with a port that is none", redisstore.Options{URL: "redis+cluster://:secret@a:1,b:x"}, "invalid port"},
		{"cluster with a database", redisstore.Options{URL: "redis+cluster://:secret@a:1/2"}, "a cluster has database 0 only"},
		{"sentinel without a primary", redisstore.Options{URL: "redis+sentinel://:secret@a:1,b:2"}, "it does not name the primary"},
		{"sentinel with a path", redisstore.Options{URL: "redis+sentinel://:secret@a:1,b:2/p/0/1"}, "its path has too many parts"},
		{"sentinel's password for another", redisstore.Options{URL: "redis://a:1", SentinelPassword: "secret"}, "redis SentinelPassword is set, want a URL that begins with redis+sentinel://"},
		{"port", redisstore.Options{URL: "redis://:secret@host:port"}, "invalid port"},
		{"escape", redisstore.Options{URL: "redis://:secret%zz@host"}, "invalid"},
		{"database", redisstore.Options{URL: "redis://:secret@host/one"}, "invalid database number"},
		{"parameter", redisstore.Options{URL: "redis://:secret@host?max_retries=3"}, "it has the parameter \"max_retries\""},
		{"parameter twice", redisstore.Options{URL: "redis://:secret@host?db=1&db=2"}, "it has the parameter \"db\" twice"},
		{"protocol", redisstore.Options{URL: "redis://:secret@host?protocol=4"}, "the parameter protocol is 2 or 3"},
		{"fragment", redisstore.Options{URL: "redis://:secret@host/#1"}, "there is a # in it"},
		{"socket", redisstore.Options{URL: "unix://"}, "path"},
		{"socket with TLS", redisstore.Options{URL: "rediss+unix:///secret"}, "it begins with none of"},
		{"TLS", redisstore.Options{URL: "redis://:secret@host", TLS: &tls.Config{MinVersion: tls.VersionTLS13}}, "redis TLS is set, want a URL that begins with rediss"},
		{"deadline", redisstore.Options{URL: "redis://:secret@host", Deadline: -time.Second}, "redis Deadline is -1s"},
		{"pool", redisstore.Options{URL: "redis://:secret@host", PoolSize: -1}, "redis PoolSize is -1"},
	} {
		_, err := redisstore.New(c.options)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: New = %v, want an error with %q", c.name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: New = %v, want an error that does not show the password", c.name, err)
		}
	}
}

func TestNewReaches(t *testing.T) {
	t.Parallel()
	for _, kind := range servers.Kinds() {
		plain := servers.Start(t, kind, servers.Options{Password: "p@ss/word"})
		socket := servers.Start(t, kind, servers.Options{Socket: true})
		for _, c := range []struct {
			name    string
			options redisstore.Options
		}{
			{"password in the URL", redisstore.Options{URL: "redis://:p%40ss%2Fword@" + plain.Addr}},
			{"password beside it", redisstore.Options{URL: "redis://:wrong@" + plain.Addr, Password: "p@ss/word"}},
			{"user and database", redisstore.Options{URL: "redis://" + plain.Addr + "/3", Username: "default", Password: "p@ss/word"}},
			{"database as a parameter", redisstore.Options{URL: "redis://" + plain.Addr + "?db=4", Password: "p@ss/word"}},
			{"socket", redisstore.Options{URL: socket.URL()}},
			{"socket, database", redisstore.Options{URL: socket.URL() + "?db=5"}},
		} {
			c.options.Deadline = patience
			store := open(t, c.options)
			if err := store.Ping(t.Context()); err != nil {
				t.Errorf("%s, %s: Ping() = %v, want no error", kind.Name, c.name, err)
			}
		}
		store := open(t, redisstore.Options{URL: socket.URL() + "?db=6", KeyPrefix: "mine:", Deadline: patience})
		take(t, store, bucket.Charge{Key: "k", Limits: one(t).Limits, Cost: 1})
		admin := client(t, socket)
		if got := admin.Do(t.Context(), "INFO", "keyspace").String(); !strings.Contains(got, "db6:keys=1,") {
			t.Errorf("%s: INFO keyspace = %q, want one key in database 6", kind.Name, got)
		}
	}
}
