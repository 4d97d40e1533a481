package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-mesh/sluice/internal/bench"
	"github.com/sluice-mesh/sluice/test/stack"
)

const (
	startsIn = 15 * time.Minute // all processes, buckets included
	endsIn   = 30 * time.Second
)

// A lab is all the processes of one run, by the names of sides.
type lab struct {
	o         options
	dir       string
	extauthz  string       // the program
	redis     *stack.Redis // nil without
	processes map[string]process
	clients   map[string]*bench.Client
	started   []*stack.Process
}

// A process answers. pids are all that use CPU for its answers.
type process struct {
	addr string
	pids []int
}

func newLab(ctx context.Context, o options) (*lab, error) {
	dir, err := os.MkdirTemp("", "sluice-bench-")
	if err != nil {
		return nil, err
	}
	l := &lab{o: o, dir: dir, processes: map[string]process{}, clients: map[string]*bench.Client{}}
	ctx, cancel := context.WithTimeout(ctx, startsIn)
	defer cancel()
	for _, step := range []func(context.Context) error{l.ours, l.withRedis, l.withEnvoy} {
		if err := step(ctx); err != nil {
			l.close()
			return nil, err
		}
	}
	return l, nil
}

func (l *lab) close() {
	for _, c := range l.clients {
		_ = c.Close()
	}
	for _, p := range l.started {
		_ = p.Stop(endsIn)
	}
	os.RemoveAll(l.dir)
}

// client returns the one for s, which is kept for its connections.
func (l *lab) client(s side) (*bench.Client, error) {
	name := fmt.Sprintf("%s %+v", s.server, s.request)
	if c := l.clients[name]; c != nil {
		return c, nil
	}
	c, err := bench.Dial(bench.Target{Addr: l.processes[s.server].addr, Connections: l.o.connections(s.request)}, s.request)
	if err != nil {
		return nil, err
	}
	l.clients[name] = c
	return c, nil
}

func (l *lab) policies() string   { return filepath.Join(l.dir, "policies") }
func (l *lab) mainPolicy() string { return filepath.Join(l.policies(), "bench.yaml") }

// ours starts the servers that need nobody else.
func (l *lab) ours(ctx context.Context) (err error) {
	if err = writePolicies(l.policies()); err != nil {
		return err
	}
	if l.extauthz, err = stack.BuildExtauthz(l.dir); err != nil {
		return err
	}
	if err = l.itself(ctx, floorServer); err != nil {
		return err
	}
	for name, keys := range map[string]int{fewServer: 10, loadedServer: l.o.loaded} {
		if err = l.itself(ctx, name, "-policy", l.mainPolicy(), "-loaded", strconv.Itoa(keys)); err != nil {
			return err
		}
	}
	return l.serve(ctx, memoryServer)
}

func (l *lab) withRedis(ctx context.Context) (err error) {
	if l.o.redis == "" {
		return nil
	}
	if l.redis, err = stack.StartRedisPort(ctx, l.o.redis, l.dir); err != nil {
		return err
	}
	l.started = append(l.started, l.redis.Process)
	if err = l.itself(ctx, chargingServer, "-charge", l.redis.Addr); err != nil {
		return err
	}
	l.beside(chargingServer, l.redis.PID())
	// A machine that is busy with other things must not turn answers into
	// those of a store that is away. With more than a second, callers would be
	// served in another way than usual.
	if err = l.serve(ctx, redisServer, "--store", "redis", "--redis-url", l.redis.URL, "--store-deadline", "1s"); err != nil {
		return err
	}
	l.beside(redisServer, l.redis.PID())
	return nil
}

// The ports in envoy.yaml.
const (
	barePort    = 10000
	askingPort  = 10001
	limiterPort = 9001
)

func (l *lab) withEnvoy(ctx context.Context) error {
	if l.o.envoy == "" {
		return nil
	}
	root, err := stack.Root()
	if err != nil {
		return err
	}
	ports := map[int]*stack.Port{}
	for _, port := range []int{barePort, askingPort} {
		if ports[port], err = stack.ReservePort(0); err != nil {
			return err
		}
	}
	limiter, err := netip.ParseAddrPort(l.processes[memoryServer].addr)
	if err != nil {
		return err
	}
	e, err := stack.StartEnvoy(ctx, stack.EnvoyOptions{
		Path: l.o.envoy, Config: filepath.Join(root, "bench", "envoy.yaml"), Dir: l.dir,
		Listen: ports, Connect: map[int]int{limiterPort: int(limiter.Port())},
	})
	if err != nil {
		return err
	}
	l.started = append(l.started, e.Process)
	for name, port := range map[string]int{bareEnvoy: barePort, askingEnvoy: askingPort} {
		l.processes[name] = process{fmt.Sprintf("127.0.0.1:%d", ports[port].Number), []int{e.PID()}}
	}
	l.beside(askingEnvoy, l.processes[memoryServer].pids...)
	return nil
}

// itself starts this program as a server that prints "ready" and where, once it
// serves.
func (l *lab) itself(ctx context.Context, name string, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p, err := stack.Start(name, self, append([]string{"-floor", "127.0.0.1:0"}, args...)...)
	if err != nil {
		return err
	}
	l.started = append(l.started, p)
	line, err := p.Await(ctx, ready)
	if err != nil {
		return err
	}
	l.processes[name] = process{strings.TrimPrefix(line, ready), []int{p.PID()}}
	return nil
}

// serve starts extauthz.
func (l *lab) serve(ctx context.Context, name string, args ...string) error {
	e, err := stack.StartExtauthz(ctx, l.extauthz, 0, append([]string{"--policy", l.policies(), "--domain", "bench"}, args...)...)
	if err != nil {
		return err
	}
	l.started = append(l.started, e.Process)
	l.processes[name] = process{e.GRPC, []int{e.PID()}}
	return nil
}

// beside has what others use counted with what name does, since they work for
// it.
func (l *lab) beside(name string, others ...int) {
	p := l.processes[name]
	l.processes[name] = process{p.addr, append(p.pids, others...)}
}
