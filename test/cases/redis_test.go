package cases_test

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/sluice-mesh/sluice/pkg/limiter/doortest"
	"github.com/sluice-mesh/sluice/pkg/redisstore"
	"github.com/sluice-mesh/sluice/test/servers"
)

// Every answer is the same, to the last header, with the buckets in Redis.
func TestCasesOnRedis(t *testing.T) {
	t.Parallel()
	redis := servers.Start(t, servers.Redis, servers.Options{})
	each(t, func(t *testing.T, ar *txtar.Archive) {
		clock := doortest.NewClock()
		newScene(t, ar, clock, open(t, redis, clock)).play(t)
	})
}

// open returns a store whose keys are its test's own.
func open(t *testing.T, redis *servers.Server, clock *doortest.Clock) *redisstore.Store {
	t.Helper()
	store, err := redisstore.New(redisstore.Options{
		URL: redis.URL(), KeyPrefix: t.Name() + ":", Deadline: 30 * time.Second, Now: func() time.Time { return clock.Now },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// Two long keys that differ in their last byte are two callers, and neither
// they nor a token are to be read in Redis.
func TestB012B013KeysInRedis(t *testing.T) {
	t.Parallel()
	const token = "s3cr3t-token-XYZ"
	long := strings.Repeat("k", 4095)
	ar := &txtar.Archive{Files: []txtar.File{
		{Name: "policy.yaml", Data: []byte(`
domain: edge
identities: {token: {bearer: true, believe: always}}
rules:
  - {name: key, match: {path: /key}, per: [header.x-api-key], limits: [{rate: 1/1h}]}
  - {name: token, match: {path: /token}, per: [token], limits: [{rate: 1/1h}]}
  - {name: whole, match: {path: /whole}, per: [header.authorization], limits: [{rate: 1/1h}]}
`)},
		{Name: "steps", Data: []byte("203.0.113.7 GET /key 'x-api-key: " + long + "a' => A\n203.0.113.7 GET /key 'x-api-key: " + long + "b' => A\n" +
			"203.0.113.7 GET /key 'x-api-key: " + long + "a' => D\n" +
			"203.0.113.7 GET /token 'authorization: Bearer " + token + "' => AD\n203.0.113.7 GET /whole 'authorization: Bearer " + token + "' => AD\n")},
	}}
	redis := servers.Start(t, servers.Redis, servers.Options{})
	clock := doortest.NewClock()
	newScene(t, ar, clock, open(t, redis, clock)).play(t)
	keys := strings.Fields(redis.Do(t, "KEYS", "*"))
	if len(keys) != 4 {
		t.Errorf("KEYS * = %q, want 4 keys", keys)
	}
	for _, key := range keys {
		if len(key) > 200+len(t.Name()) || strings.Contains(key, token) || strings.Contains(key, "kkkk") {
			t.Errorf("KEYS * has %q, want at most 200 bytes and no secret in it", key)
		}
	}
}
