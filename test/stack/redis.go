package stack

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"
)

// Redis is a running Redis or Valkey that keeps nothing on disk.
type Redis struct {
	*Process
	URL  string
	Addr string // host:port; "" on a Unix socket
}

// StartRedis starts the server at path on a Unix socket in dir, and waits
// until it answers.
func StartRedis(ctx context.Context, path, dir string) (*Redis, error) {
	socket := filepath.Join(dir, "redis.sock")
	p, err := startRedis(ctx, path, dir, "--port", "0", "--unixsocket", socket)
	if err != nil {
		return nil, err
	}
	return &Redis{Process: p, URL: "unix://" + socket}, nil
}

// StartRedisPort is StartRedis at a port that was free, with more arguments.
func StartRedisPort(ctx context.Context, path, dir string, args ...string) (*Redis, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	p, err := startRedis(ctx, path, dir, append([]string{"--bind", "127.0.0.1", "--port", strconv.Itoa(port)}, args...)...)
	if err != nil {
		return nil, err
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	return &Redis{Process: p, URL: "redis://" + addr, Addr: addr}, nil
}

func startRedis(ctx context.Context, path, dir string, args ...string) (*Process, error) {
	p, err := Start("redis", path, append([]string{"--save", "", "--appendonly", "no", "--dir", dir}, args...)...)
	if err != nil {
		return nil, err
	}
	if _, err := p.Await(ctx, "eady to accept connections"); err != nil {
		_ = p.Stop(time.Second)
		return nil, err
	}
	return p, nil
}
