package stack

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Extauthz is a running extauthz.
type Extauthz struct {
	*Process
	GRPC, Admin string // where it listens
}

// BuildExtauthz builds the program into dir and returns its path.
func BuildExtauthz(dir string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "extauthz")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", path, "./cmd/extauthz")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build extauthz: %w\n%s", err, out)
	}
	return path, nil
}

// StartExtauthz runs extauthz serve with args, which must not say where to
// listen, and waits until it is ready. It listens on port first, and its admin
// port is the next, or else on the first two above that are free. With 0 it
// takes any.
func StartExtauthz(ctx context.Context, path string, first int, args ...string) (*Extauthz, error) {
	if first == 0 {
		return startExtauthz(ctx, path, 0, 0, args)
	}
	for n := first; n < first+tries; n += 2 {
		e, err := startExtauthz(ctx, path, n, n+1, args)
		if err == nil || !strings.Contains(err.Error(), syscall.EADDRINUSE.Error()) {
			return e, err
		}
	}
	return nil, fmt.Errorf("start extauthz: no port is free from %d on", first)
}

func startExtauthz(ctx context.Context, path string, grpc, admin int, args []string) (*Extauthz, error) {
	args = append([]string{
		"serve", "--grpc-addr", fmt.Sprintf("127.0.0.1:%d", grpc), "--admin-addr", fmt.Sprintf("127.0.0.1:%d", admin),
	}, args...)
	p, err := Start("extauthz", path, args...)
	if err != nil {
		return nil, err
	}
	line, err := p.Await(ctx, " msg=ready ")
	if err != nil {
		_ = p.Stop(time.Second)
		return nil, err
	}
	addrs := ready.FindStringSubmatch(line)
	if addrs == nil {
		_ = p.Stop(time.Second)
		return nil, fmt.Errorf("extauthz is ready, and does not say where: %s", line)
	}
	return &Extauthz{Process: p, GRPC: addrs[1], Admin: addrs[2]}, nil
}

var ready = regexp.MustCompile(` grpc=(\S+) (?:.* )?admin=(\S+)`)

// Port returns the port of the gRPC services, 0 if there is none.
func (e *Extauthz) Port() int {
	_, port, _ := net.SplitHostPort(e.GRPC)
	n, _ := strconv.Atoi(port)
	return n
}
