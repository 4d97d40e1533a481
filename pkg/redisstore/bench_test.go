package redisstore_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"runtime"
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

// BenchmarkGather has 32 callers at a time, on 100,000 buckets and on one.
func BenchmarkGather(b *testing.B) {
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
		for _, buckets := range []int{1, 100_000} {
			for _, tokens := range []int64{0, 1_000_000} {
				b.Run(fmt.Sprintf("%s/buckets=%d/tokens=%d", kind.Name, buckets, tokens), func(b *testing.B) {
					benchmarkGather(b, store, admin, buckets, tokens)
				})
			}
		}
	}
}

func benchmarkGather(b *testing.B, store *redisstore.Store, admin *redis.Client, buckets int, tokens int64) {
	ls, err := bucket.NewLimits(bucket.Limit{Tokens: tokens, Burst: max(tokens, 1), Per: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	keys := make([]string, buckets)
	for i := range keys {
		keys[i] = fmt.Sprintf("{k3v9x2ab}4:edge3:api%d-%05d", tokens, i)
	}
	before, ran := cpuMicros(b, admin), scriptsRun(b, admin)
	b.ReportAllocs()
	b.SetParallelism(max(32/runtime.GOMAXPROCS(0), 1))
	b.RunParallel(func(pb *testing.PB) {
		charges, results := []bucket.Charge{{Limits: ls, Cost: 1}}, make([]bucket.Result, 1)
		for pb.Next() {
			charges[0].Key = keys[rand.IntN(len(keys))]
			if err := store.Take(b.Context(), charges, results); err != nil || results[0].Allowed == (tokens == 0) {
				b.Errorf("Take = %+v, %v, want room: %v", results[0], err, tokens > 0)
				return
			}
		}
	})
	b.ReportMetric((cpuMicros(b, admin)-before)/float64(b.N), "server-µs/op")
	b.ReportMetric(float64(b.N)/float64(max(scriptsRun(b, admin)-ran, 1)), "calls/script")
}

var evals = regexp.MustCompile(`cmdstat_eval(?:sha)?:calls=([0-9]+)`)

func scriptsRun(b *testing.B, admin *redis.Client) (sum int) {
	b.Helper()
	for _, m := range evals.FindAllStringSubmatch(admin.Info(b.Context(), "commandstats").Val(), -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			b.Fatalf("INFO commandstats: %v", err)
		}
		sum += n
	}
	return sum
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
