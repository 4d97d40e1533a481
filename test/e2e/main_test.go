// Package e2e_test asks a real Envoy, on the configurations and policies that
// are published in envoy/ and examples/, and wants the answers that they
// promise. Only ports and timeouts are others than in the files.
package e2e_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/sluice-mesh/sluice/test/stack"
)

// These tests wait for limits to refill more than they compute.
const parallel = "16"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", parallel); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := end(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// What all tests share is made by the first that needs it.
var (
	shared struct {
		sync.Mutex
		dir   string
		redis *stack.Redis
	}
	dir      = sync.OnceValues(makeDir)
	programs = sync.OnceValues(build)
	redis    = sync.OnceValues(startRedis)
)

func makeDir() (string, error) {
	dir, err := os.MkdirTemp("", "sluice-e2e-")
	shared.Lock()
	defer shared.Unlock()
	shared.dir = dir
	return dir, err
}

func build() (string, error) {
	dir, err := dir()
	if err != nil {
		return "", err
	}
	return stack.BuildExtauthz(dir)
}

func startRedis() (*stack.Redis, error) {
	dir, err := dir()
	if err != nil {
		return nil, err
	}
	path, err := stack.RedisPath()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	r, err := stack.StartRedis(ctx, path, dir)
	shared.Lock()
	defer shared.Unlock()
	shared.redis = r
	return r, err
}

// end ends what was made.
func end() error {
	shared.Lock()
	defer shared.Unlock()
	var errs []error
	if shared.redis != nil {
		errs = append(errs, shared.redis.Stop(stopTime))
	}
	if shared.dir != "" {
		errs = append(errs, os.RemoveAll(shared.dir))
	}
	return errors.Join(errs...)
}
