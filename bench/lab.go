package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/sluice-mesh/sluice/internal/bench"
)

//go:embed envoy.yaml
var envoyConfig []byte

// A lab is all the processes of one run, by the names of sides.
type lab struct {
	ctx       context.Context
	o         options
	dir       string
	self      string // this program
	redis     string // its address
	processes map[string]process
	clients   map[string]*bench.Client
	started   []*running
}

// A process answers. pids are all that use CPU for its answers.
type process struct {
	addr string
	pids []int
}

func newLab(ctx context.Context, o options) (*lab, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "sluice-bench-")
	if err != nil {
		return nil, err
	}
	l := &lab{ctx: ctx, o: o, self: self, dir: dir, processes: map[string]process{}, clients: map[string]*bench.Client{}}
	for _, step := range []func() error{l.build, l.ours, l.withRedis, l.withEnvoy} {
		if err := step(); err != nil {
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
	for _, r := range l.started {
		_ = r.cmd.Process.Signal(syscall.SIGTERM)
	}
	for _, r := range l.started {
		<-r.ended
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
	l.clients[name] = c
	return c, err
}

func (l *lab) build() error {
	if err := writePolicies(l.policies()); err != nil {
		return err
	}
	build := exec.CommandContext(l.ctx, "go", "build", "-o", l.extauthz(), "./cmd/extauthz")
	build.Stderr = os.Stderr
	return build.Run()
}

func (l *lab) policies() string { return filepath.Join(l.dir, "policies") }
func (l *lab) extauthz() string { return filepath.Join(l.dir, "extauthz") }

func (l *lab) mainPolicy() string { return filepath.Join(l.policies(), "bench.yaml") }

// ours starts the servers that need nobody else.
func (l *lab) ours() error {
	if err := l.add(floorServer, l.self, func(addr string) []string { return []string{"-floor", addr} }); err != nil {
		return err
	}
	for name, keys := range map[string]int{fewServer: 10, loadedServer: l.o.loaded} {
		err := l.add(name, l.self, func(addr string) []string {
			return []string{"-floor", addr, "-policy", l.mainPolicy(), "-loaded", strconv.Itoa(keys)}
		})
		if err != nil {
			return err
		}
	}
	return l.serve(memoryServer)
}

func (l *lab) withRedis() error {
	if l.o.redis == "" {
		return nil
	}
	redis := "a Redis"
	err := l.add(redis, l.o.redis, func(addr string) []string {
		_, port, _ := net.SplitHostPort(addr)
		return []string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", l.dir}
	})
	if err != nil {
		return err
	}
	l.redis = l.processes[redis].addr
	err = l.add(chargingServer, l.self, func(addr string) []string { return []string{"-floor", addr, "-charge", l.redis} })
	if err != nil {
		return err
	}
	l.beside(chargingServer, redis)
	// A machine that is busy with other things must not turn answers into
	// those of a store that is away. With more than a second, callers would be
	// served in another way than usual.
	err = l.serve(redisServer, "--store", "redis", "--redis-url", "redis://"+l.redis, "--store-deadline", "1s")
	l.beside(redisServer, redis)
	return err
}

func (l *lab) withEnvoy() error {
	if l.o.envoy == "" {
		return nil
	}
	bare, err := freeAddr()
	if err != nil {
		return err
	}
	config := filepath.Join(l.dir, "envoy.yaml")
	err = l.add(askingEnvoy, l.o.envoy, func(addr string) []string {
		text := envoyConfig
		for name, addr := range map[string]string{"LIMITED": addr, "BARE": bare, "LIMITER": l.processes[memoryServer].addr} {
			_, port, _ := net.SplitHostPort(addr)
			text = bytes.ReplaceAll(text, []byte("${"+name+"}"), []byte(port))
		}
		if err := os.WriteFile(config, text, 0o600); err != nil {
			return nil // and Envoy says that it has no configuration
		}
		return []string{"-c", config, "--base-id", strconv.Itoa(os.Getpid()), "--concurrency", "1", "-l", "error"}
	})
	envoy := l.processes[askingEnvoy]
	l.processes[bareEnvoy] = process{bare, envoy.pids}
	l.beside(askingEnvoy, memoryServer)
	return err
}

// serve starts extauthz.
func (l *lab) serve(name string, args ...string) error {
	return l.add(name, l.extauthz(), func(addr string) []string {
		return append([]string{"serve", "--policy", l.policies(), "--domain", "bench", "--grpc-addr", addr, "--admin-addr", ""}, args...)
	})
}

// beside has what the process other uses counted with what name does, since it
// works for that.
func (l *lab) beside(name, other string) {
	p := l.processes[name]
	l.processes[name] = process{p.addr, append(p.pids, l.processes[other].pids...)}
}

// add runs a program that is to listen on a free address, and waits until it
// does.
func (l *lab) add(name, program string, args func(addr string) []string) error {
	addr, err := freeAddr()
	if err != nil {
		return err
	}
	r, err := startProgram(program, args(addr)...)
	if err != nil {
		return err
	}
	l.started = append(l.started, r)
	l.processes[name] = process{addr, []int{r.cmd.Process.Pid}}
	if program == l.self {
		return r.says(l.o.start)
	}
	return r.listens(addr, l.o.start)
}

// A running is a program that was started.
type running struct {
	cmd    *exec.Cmd
	output output
	ended  chan struct{} // is closed then
}

func startProgram(program string, args ...string) (*running, error) {
	r := &running{cmd: exec.Command(program, args...), ended: make(chan struct{})}
	r.output.ready = make(chan struct{}, 1)
	r.cmd.Stdout, r.cmd.Stderr = &r.output, &r.output
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = r.cmd.Wait() // how it ended is in its output
		close(r.ended)
	}()
	return r, nil
}

// An output keeps what a program prints: good once it has ended. One of ours
// prints "ready" when it serves, since to dial again and again until then could
// find another's port.
type output struct {
	text  bytes.Buffer
	ready chan struct{}
}

// Write notes that the program is ready.
func (o *output) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("ready")) {
		select {
		case o.ready <- struct{}{}:
		default:
		}
	}
	return o.text.Write(p)
}

// says waits until r says that it is ready.
func (r *running) says(patience time.Duration) error {
	select {
	case <-r.output.ready:
		return nil
	case <-r.ended:
		return fmt.Errorf("%s has ended: %s", r.cmd, r.output.text.String())
	case <-time.After(patience):
		return fmt.Errorf("%s is not ready after %s", r.cmd, patience)
	}
}

// listens waits until r does at addr.
func (r *running) listens(addr string, patience time.Duration) error {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if conn, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
			return conn.Close()
		}
		select {
		case <-r.ended:
			return fmt.Errorf("%s has ended: %s", r.cmd, r.output.text.String())
		case <-time.After(50 * time.Millisecond):
		}
	}
	return fmt.Errorf("%s does not listen on %s after %s", r.cmd, addr, patience)
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
