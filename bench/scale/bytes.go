package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"time"

	"github.com/sluice-mesh/sluice/bench/sheet"
	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/memstore"
	"github.com/sluice-mesh/sluice/test/stack"
)

// bytesOf is the memory of one bucket.
type bytesOf struct {
	Redis    float64 `json:"redis_bytes"`
	Memstore float64 `json:"memory_store_bytes"`
}

// bytesOf has a million buckets in the memory store, and for so long new ones in
// the Redis of the lab.
func (l *lab) bytesOf(ctx context.Context, d time.Duration) (b bytesOf, err error) {
	const many = 1_000_000
	p := place{Fleet: asking, Replicas: 1, Callers: 64, Rule: "empty", Keys: many}
	before, err := l.look(p)
	if err != nil {
		return b, err
	}
	if _, err := l.ask(ctx, p, 0, d); err != nil {
		return b, err
	}
	after, err := l.look(p)
	if err != nil {
		return b, err
	}
	used := after.redis.plus(before.redis, -1)
	b.Redis = used.memory / used.keys
	b.Memstore, err = memstoreBytes(many)
	return b, err
}

// memstoreBytes has n buckets in a memory store.
func memstoreBytes(n int) (float64, error) {
	store, err := memstore.New(memstore.Options{MaxBytes: 1 << 40})
	if err != nil {
		return 0, err
	}
	ls, err := bucket.NewLimits(bucket.Limit{Tokens: 1, Per: 24 * time.Hour})
	if err != nil {
		return 0, err
	}
	before := heap()
	charges, results := []bucket.Charge{{Limits: ls, Cost: 1}}, make([]bucket.Result, 1)
	for i := range n {
		charges[0].Key = fmt.Sprintf("{k3v9x2ab}4:edge3:api%08d", i)
		if err := store.Take(context.Background(), charges, results); err != nil {
			return 0, err
		}
	}
	used := heap() - before
	runtime.KeepAlive(store)
	return used / float64(n), nil
}

func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// A flat is what bench/ says of one of its works: CPU of a request, as a share
// of the same work's with the least of rules or keys.
type flat struct {
	Work  string  `json:"work"`
	CPU   float64 `json:"cpu_us"`
	Share float64 `json:"share"`
	Least float64 `json:"share_least"`
	Most  float64 `json:"share_most"`
}

// leastFlat is how long bench/ needs to count CPU time, which comes in hundredths
// of a second.
const leastFlat = 2 * time.Second

// flats has bench/ measure what should cost the same however much there is of
// it.
func flats(ctx context.Context, rounds int, each time.Duration, progress io.Writer) ([]flat, error) {
	root, err := stack.Root()
	if err != nil {
		return nil, err
	}
	var all []flat
	for _, run := range []struct{ only, keys string }{{"over 10", "100000"}, {"keys over 10", "10000000"}} {
		bench := exec.CommandContext(ctx, "go", "run", "./bench", "-json",
			"-only", run.only, "-loaded", run.keys, "-rounds", fmt.Sprint(rounds), "-time", each.String())
		bench.Dir, bench.Stderr = root, progress
		out, err := bench.Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", bench, err)
		}
		found, err := readFlats(out)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", bench, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

// readFlats reads what bench/ prints.
func readFlats(printed []byte) ([]flat, error) {
	var found struct {
		Works []struct {
			Work   string    `json:"work"`
			CPU    []float64 `json:"cpu_us"`
			Shares []float64 `json:"cpu_shares"`
		} `json:"works"`
	}
	if err := json.Unmarshal(printed, &found); err != nil {
		return nil, err
	}
	var all []flat
	for _, w := range found.Works {
		all = append(all, flat{w.Work, sheet.Median(w.CPU), sheet.Median(w.Shares), slices.Min(w.Shares), slices.Max(w.Shares)})
	}
	return all, nil
}

// together is one turn of several: the median of each number, and of CPU time
// the least, since what else goes on on a machine only adds to it.
func together(turns []turn) turn {
	t := turn{place: turns[0].place}
	set := func(choose func([]float64) float64, picks ...func(t *turn) *float64) {
		for _, pick := range picks {
			var values []float64
			for i := range turns {
				values = append(values, *pick(&turns[i]))
			}
			*pick(&t) = choose(values)
		}
	}
	set(slices.Min[[]float64],
		func(t *turn) *float64 { return &t.ReplicaCPU },
		func(t *turn) *float64 { return &t.RedisCPU })
	set(sheet.Median,
		func(t *turn) *float64 { return &t.PerSecond },
		func(t *turn) *float64 { return &t.Reads },
		func(t *turn) *float64 { return &t.Scripts },
		func(t *turn) *float64 { return &t.RedisIn },
		func(t *turn) *float64 { return &t.RedisOut },
		func(t *turn) *float64 { return &t.ReplicaIn },
		func(t *turn) *float64 { return &t.ReplicaOut })
	return t
}

// keep writes m where the program is built from it.
func (m measured) keep(path string) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644) //nolint:gosec // it is to be read by everybody
}
