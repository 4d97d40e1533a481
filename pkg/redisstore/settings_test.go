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
		{"no scheme", redisstore.Options{URL: "localhost:6379"}, "it begins with none of redis://, rediss:// and unix://"},
		{"other scheme", redisstore.Options{URL: "http://:secret@host"}, "it begins with none of"},
		{"cluster", redisstore.Options{URL: "redis+cluster://:secret@a:1,b:2"}, "redis+cluster:// is not there yet"},
		{"sentinel", redisstore.Options{URL: "redis+sentinel://:secret@a:1/primary/0"}, "redis+sentinel:// is not there yet"},
		{"several", redisstore.Options{URL: "redis://:secret@a:1,b:2/0"}, "several servers are not there yet"},
		{"port", redisstore.Options{URL: "redis://:secret@host:port"}, "invalid port"},
		{"escape", redisstore.Options{URL: "redis://:secret%zz@host"}, "invalid"},
		{"database", redisstore.Options{URL: "redis://:secret@host/one"}, "invalid database number"},
		{"parameter", redisstore.Options{URL: "redis://:secret@host?max_retries=3"}, "the only parameter is db"},
		{"socket", redisstore.Options{URL: "unix://"}, "path"},
		{"TLS", redisstore.Options{URL: "redis://:secret@host", TLS: &tls.Config{MinVersion: tls.VersionTLS13}}, "redis TLS is set, want a URL that begins with rediss://"},
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
