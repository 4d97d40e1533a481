package stack

import (
	"context"
	"path/filepath"
	"time"
)

// Redis is a running Redis or Valkey that keeps nothing on disk.
type Redis struct {
	*Process
	URL string
}

// StartRedis starts the server at path on a Unix socket in dir, and waits
// until it answers.
func StartRedis(ctx context.Context, path, dir string) (*Redis, error) {
	socket := filepath.Join(dir, "redis.sock")
	p, err := Start("redis", path, "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", dir)
	if err != nil {
		return nil, err
	}
	if _, err := p.Await(ctx, "eady to accept connections"); err != nil {
		_ = p.Stop(time.Second)
		return nil, err
	}
	return &Redis{Process: p, URL: "unix://" + socket}, nil
}
