package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sluice-mesh/sluice/internal/bench"
)

// The fleets of the lab, by the store that they share.
const (
	memory  = "memory"
	redis   = "redis"
	asking  = "asking"  // redis, with no denial cache
	crowded = "crowded" // a Redis with keys of others
	cluster = "cluster" // of so many nodes as follow

	remembered = "denied, remembered" // a place whose requests hardly reach Redis

	mostReplicas = 4
	mostNodes    = 3
)

// A place is one thing that is measured: callers ask replicas of a fleet.
type place struct {
	Name     string `json:"name"`
	Fleet    string `json:"fleet"`
	Replicas int    `json:"replicas"`
	Callers  int    `json:"callers"` // of all replicas
	Rule     string `json:"rule"`
	Keys     uint64 `json:"keys"`
	// Writes says that every request takes a token.
	Writes bool `json:"writes"`
}

func (p place) direct() bool { return strings.HasPrefix(p.Fleet, direct) }

// places are measured in turns.
func places() []place {
	const many = 100_000
	var all []place
	for _, callers := range []int{1, 4, 16, 64, 256} {
		for _, fleet := range []string{memory, redis} {
			all = append(all, place{fmt.Sprintf("%s, %d callers", fleet, callers), fleet, 1, callers, "user", many, true})
		}
	}
	for _, n := range []int{2, mostReplicas} {
		all = append(all, place{fmt.Sprintf("redis, %d replicas", n), redis, n, 64, "user", many, true})
	}
	for n := 1; n <= mostNodes; n++ {
		all = append(all, place{fmt.Sprintf("cluster, %d nodes", n), clusterOf(n), 1, 64, "user", many, true})
	}
	all = append(all,
		place{"redis, 10 keys", redis, 1, 64, "user", 10, true},
		place{"redis, 10 M keys", crowded, 1, 64, "user", many, true},
	)
	for _, callers := range []int{1, 64} {
		all = append(all, place{fmt.Sprintf("hot, %d callers", callers), redis, 1, callers, "hot", 1, true})
	}
	for _, store := range []string{redis, clusterOf(1)} {
		all = append(all, place{direct + store, direct + store, 32, 32, "", many, true})
	}
	return append(all,
		place{"denied, asked", asking, 1, 64, "empty", 1000, false},
		place{remembered, redis, 1, 64, "empty", 1000, false},
	)
}

// A turn is what one place came to, once or several times together.
// What is of a request is the mean over requests.
type turn struct {
	place
	PerSecond  float64 `json:"requests_per_second"`
	ReplicaCPU float64 `json:"replica_cpu_us"` // of all replicas, a request
	RedisCPU   float64 `json:"redis_cpu_us"`   // of all nodes
	Reads      float64 `json:"reads"`          // by Redis, a request: batches
	Scripts    float64 `json:"scripts"`
	RedisIn    float64 `json:"redis_in_bytes"`
	RedisOut   float64 `json:"redis_out_bytes"`
	ReplicaIn  float64 `json:"replica_in_bytes"` // what Redis sends it included
	ReplicaOut float64 `json:"replica_out_bytes"`
}

// measured is what bench/scale/measured.json holds.
type measured struct {
	Cores  int     `json:"cores"`
	Go     string  `json:"go"`
	Redis  string  `json:"redis"`
	Rounds int     `json:"rounds"`
	Time   string  `json:"time"`
	Turns  []turn  `json:"turns"`
	Memory bytesOf `json:"memory"`
	Flat   []flat  `json:"flat"`
}

// measureAll visits all places, so many times.
func (o options) measureAll(ctx context.Context, progress io.Writer) (measured, error) {
	m := measured{Cores: runtime.NumCPU(), Go: runtime.Version(), Rounds: o.rounds, Time: o.each.String()}
	l, err := newLab(ctx, o.crowd)
	if err != nil {
		return m, err
	}
	defer l.close()
	if m.Redis, err = l.stores[redis][0].version(); err != nil {
		return m, err
	}
	all := places()
	turns := make([][]turn, len(all))
	for round := range o.rounds {
		for i, p := range all {
			fmt.Fprintf(progress, "round %d of %d: %s\n", round+1, o.rounds, p.Name)
			t, err := l.visit(ctx, p, o.each)
			if err != nil {
				return m, fmt.Errorf("%s: %w", p.Name, err)
			}
			turns[i] = append(turns[i], t)
		}
	}
	for _, of := range turns {
		m.Turns = append(m.Turns, together(of))
	}
	m.Memory, err = l.bytesOf(ctx, o.each)
	return m, err
}

// visit asks p for so long.
func (l *lab) visit(ctx context.Context, p place, d time.Duration) (turn, error) {
	reports := make([]bench.Report, p.Replicas)
	errs := make([]error, p.Replicas)
	ask := func(d time.Duration) error {
		if p.direct() {
			var err error
			reports[0], err = l.askDirect(ctx, p, d)
			return err
		}
		var wait sync.WaitGroup
		for i := range p.Replicas {
			wait.Go(func() { reports[i], errs[i] = l.ask(ctx, p, i, d) })
		}
		wait.Wait()
		return errors.Join(append(errs, ctx.Err())...)
	}
	if err := ask(d / 5); err != nil { // connections, and the empty buckets
		return turn{}, err
	}
	before, err := l.look(p)
	if err != nil {
		return turn{}, err
	}
	if err := ask(d); err != nil {
		return turn{}, err
	}
	after, err := l.look(p)
	return p.turn(reports, before, after), err
}

func (l *lab) ask(ctx context.Context, p place, replica int, d time.Duration) (bench.Report, error) {
	entry := bench.Entry{Key: p.Rule, Value: p.Rule + "-{key}"}
	if p.Rule == "hot" {
		entry = bench.Entry{Key: "generic_key", Value: "hot"}
	}
	client, err := l.client(p.Fleet, replica, bench.RLS{Domain: "bench", Descriptors: [][]bench.Entry{{entry}}})
	if err != nil {
		return bench.Report{}, err
	}
	r, err := bench.Run(ctx, client, bench.Options{
		Callers: p.Callers / p.Replicas, Duration: d, Timeout: patience, Keys: p.Keys, Seed: uint64(replica + 1),
	})
	if err == nil && r.Unanswered > 0 {
		err = fmt.Errorf("%d requests had no answer: %s", r.Unanswered, r.FirstError)
	}
	return r, err
}

// A glance is what the processes of a place have used so far.
type glance struct {
	redis   count
	cpu     float64 // µs, of the replicas
	in, out float64 // bytes, of the replicas
}

func (l *lab) look(p place) (g glance, err error) {
	for _, n := range l.stores[p.Fleet] {
		c, err := n.count()
		if err != nil {
			return g, err
		}
		g.redis = g.redis.plus(c, 1)
	}
	for _, pid := range l.pids(p) {
		used, err := bench.CPUTime(pid)
		if err != nil {
			return g, err
		}
		in, out, err := transferred(pid)
		if err != nil {
			return g, err
		}
		g.cpu += float64(used.Microseconds())
		g.in += in
		g.out += out
	}
	return g, nil
}

// pids are of the processes that the replicas of p are: this one where it asks
// directly.
func (l *lab) pids(p place) []int {
	if p.direct() {
		return []int{os.Getpid()}
	}
	var pids []int
	for _, e := range l.fleets[p.Fleet][:p.Replicas] {
		pids = append(pids, e.PID())
	}
	return pids
}

// transferred is how many bytes a process has read and written so far.
func transferred(pid int) (in, out float64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		n, _ := strconv.ParseFloat(value, 64)
		switch name {
		case "rchar":
			in = n
		case "wchar":
			out = n
		}
	}
	return in, out, err
}

func (p place) turn(reports []bench.Report, before, after glance) turn {
	n, rate := 0.0, 0.0
	for _, r := range reports {
		n += float64(r.Requests)
		rate += r.PerSecond
	}
	used := after.redis.plus(before.redis, -1)
	return turn{
		place: p, PerSecond: rate, ReplicaCPU: (after.cpu - before.cpu) / n, RedisCPU: used.cpu / n,
		Reads: used.reads / n, Scripts: used.scripts / n, RedisIn: used.in / n, RedisOut: used.out / n,
		ReplicaIn: (after.in - before.in) / n, ReplicaOut: (after.out - before.out) / n,
	}
}
