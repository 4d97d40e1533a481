package redisstore_test

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/redisstore"
	"github.com/sluice-mesh/sluice/test/servers"
)

// BenchmarkTake reports, beside the round trip, the processor
// time that each key costs the server.
func BenchmarkTake(b *testing.B) {
	for _, kind := range servers.Kinds() {
		server := servers.Start(b, kind, servers.Options{Socket: true})
		store, err := redisstore.New(redisstore.Options{URL: server.URL(), Deadline: time.Minute})
		if err != nil {
			b.Fatal(err)
		}
		defer store.Close()
		o, _ := redis.ParseURL(server.URL())
		admin := redis.NewClient(o)
		defer admin.Close()
		for _, n := range []int{1, 3, 100} {
			b.Run(fmt.Sprintf("%s/keys=%d", kind.Name, n), func(b *testing.B) {
				benchmarkTake(b, store, admin, n)
			})
		}
	}
}

func benchmarkTake(b *testing.B, store *redisstore.Store, admin *redis.Client, keys int) {
	ls, err := bucket.NewLimits(bucket.Limit{Tokens: 1_000_000_000, Per: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	charges := make([]bucket.Charge, keys)
	for i := range charges {
		charges[i] = bucket.Charge{Key: fmt.Sprintf("{k3v9x2ab}4:edge3:api%05d", i), Limits: ls, Cost: 1}
	}
	results := make([]bucket.Result, keys)
	before := cpuMicros(b, admin)
	b.ReportAllocs()
	for b.Loop() {
		if err := store.Take(b.Context(), charges, results); err != nil || !results[0].Allowed {
			b.Fatalf("Take = %+v, %v, want room", results[0], err)
		}
	}
	b.ReportMetric((cpuMicros(b, admin)-before)/float64(keys*b.N), "server-µs/key")
}

var cpu = regexp.MustCompile(`used_cpu_(?:sys|user)_main_thread:([0-9.]+)`)

// cpuMicros is the processor time that the server's main thread has used.
func cpuMicros(b *testing.B, admin *redis.Client) float64 {
	b.Helper()
	info := admin.Info(b.Context(), "cpu").Val()
	sum := 0.0
	for _, m := range cpu.FindAllStringSubmatch(info, -1) {
		seconds, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			b.Fatalf("INFO cpu = %q: %v", info, err)
		}
		sum += seconds * 1e6
	}
	return sum
}
