package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

var (
	//go:embed envoy.yaml
	envoyConfig []byte
	//go:embed policy.yaml
	policyFile []byte
)

// A target is something that answers, under the name it has in the report.
// The first one is the floor.
type target struct {
	name string
	ask  ask
}

// A lab is all the processes of one run, and the targets among them.
type lab struct {
	ctx     context.Context
	o       options
	dir     string
	targets []target
	started []*exec.Cmd
	closers []func()
}

func newLab(ctx context.Context, o options) (*lab, error) {
	dir, err := os.MkdirTemp("", "sluice-bench-")
	if err != nil {
		return nil, err
	}
	l := &lab{ctx: ctx, o: o, dir: dir}
	for _, step := range []func() error{l.build, l.floor, l.memory, l.withRedis, l.withEnvoy} {
		if err := step(); err != nil {
			l.close()
			return nil, err
		}
	}
	return l, nil
}

func (l *lab) close() {
	for _, c := range l.closers {
		c()
	}
	for _, cmd := range l.started {
		_ = cmd.Process.Signal(syscall.SIGTERM)
	}
	for _, cmd := range l.started {
		_ = cmd.Wait()
	}
	os.RemoveAll(l.dir)
}

func (l *lab) build() error {
	if err := os.WriteFile(filepath.Join(l.dir, "policy.yaml"), policyFile, 0o600); err != nil {
		return err
	}
	build := exec.CommandContext(l.ctx, "go", "build", "-o", l.extauthz(), "./cmd/extauthz")
	build.Stderr = os.Stderr
	return build.Run()
}

func (l *lab) extauthz() string { return filepath.Join(l.dir, "extauthz") }

func (l *lab) floor() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	addr, err := l.start(self, func(addr string) []string { return []string{"-floor", addr} })
	if err != nil {
		return err
	}
	return l.addChecks("bare gRPC server, ext_authz", addr)
}

func (l *lab) memory() error {
	addr, err := l.serve()
	if err != nil {
		return err
	}
	return l.addChecks("sluice, ext_authz, memory", addr)
}

func (l *lab) withRedis() error {
	if l.o.redis == "" {
		return nil
	}
	server, err := l.start(l.o.redis, func(addr string) []string {
		_, port, _ := net.SplitHostPort(addr)
		return []string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", l.dir}
	})
	if err != nil {
		return err
	}
	addr, err := l.serve("--store", "redis", "--redis-url", "redis://"+server)
	if err != nil {
		return err
	}
	return l.addChecks("sluice, ext_authz, Redis", addr)
}

func (l *lab) withEnvoy() error {
	if l.o.envoy == "" {
		return nil
	}
	limiter, err := l.serve()
	if err != nil {
		return err
	}
	bare, err := freeAddr()
	if err != nil {
		return err
	}
	config := filepath.Join(l.dir, "envoy.yaml")
	limited, err := l.start(l.o.envoy, func(addr string) []string {
		text := envoyConfig
		for name, addr := range map[string]string{"LIMITED": addr, "BARE": bare, "LIMITER": limiter} {
			_, port, _ := net.SplitHostPort(addr)
			text = bytes.ReplaceAll(text, []byte("${"+name+"}"), []byte(port))
		}
		if err := os.WriteFile(config, text, 0o600); err != nil {
			return nil
		}
		return []string{"-c", config, "--base-id", strconv.Itoa(os.Getpid()), "--concurrency", "1", "-l", "error"}
	})
	if err != nil {
		return err
	}
	if err := l.addGets("Envoy without a limiter, HTTP", "http://"+bare+"/bench"); err != nil {
		return err
	}
	return l.addGets("Envoy asking sluice, HTTP", "http://"+limited+"/bench")
}

func (l *lab) serve(args ...string) (string, error) {
	return l.start(l.extauthz(), func(addr string) []string {
		return append([]string{"serve", "--policy", filepath.Join(l.dir, "policy.yaml"), "--grpc-addr", addr, "--admin-addr", ""}, args...)
	})
}

func (l *lab) addChecks(name, addr string) error {
	ask, done, err := checks(l.o, addr)
	return l.add(name, ask, done, err)
}

func (l *lab) addGets(name, url string) error {
	ask, done, err := gets(l.o, url)
	return l.add(name, ask, done, err)
}

func (l *lab) add(name string, ask ask, done func(), err error) error {
	if err != nil {
		return err
	}
	l.closers = append(l.closers, done)
	l.targets = append(l.targets, target{name, ask})
	return nil
}

// start runs a program that is to listen on a free address, and waits until
// it does.
func (l *lab) start(name string, args func(addr string) []string) (addr string, err error) {
	if addr, err = freeAddr(); err != nil {
		return "", err
	}
	cmd := exec.Command(name, args(addr)...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		return "", err
	}
	l.started = append(l.started, cmd)
	for range 200 {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			return addr, conn.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	return "", errors.New(name + " does not listen on " + addr)
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
