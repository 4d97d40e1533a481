package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sluice-mesh/sluice/test/stack"
)

// The example's file of envoyproxy/ratelimit, by what takes its place.
func TestMeshRLSInPlaceOfRatelimit(t *testing.T) {
	t.Parallel()
	for _, store := range []string{"memory", "redis"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			s := example("mesh-rls", "memory")
			s.policy = "examples/mesh-rls/ratelimit.yaml"
			s.via = func(t *testing.T, _ int) int {
				return inPlaceOfRatelimit(t, store, readFile(t, filepath.Join(must(t)(stack.Root()), s.policy)))
			}
			y := start(t, s)
			meshRLS(t, y)
			if n := y.upstream.Unasked(); n != 0 {
				t.Errorf("%d requests passed without an answer from Sluice, want 0", n)
			}
		})
	}
}

// inPlaceOfRatelimit runs the program under that name with one file of limits,
// and returns its port.
func inPlaceOfRatelimit(t *testing.T, store, limits string) int {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "ratelimit")
	if err := os.Symlink(extauthz(t), program); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "config"), 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "config", "mesh.yaml"), limits)
	cmd := exec.Command(program)
	cmd.Env = append(cmd.Environ(),
		"RUNTIME_ROOT="+dir, "HOST=127.0.0.1", "GRPC_HOST=127.0.0.1", "DEBUG_HOST=127.0.0.1", "PORT=0", "GRPC_PORT=0", "DEBUG_PORT=0",
		"USE_STATSD=false", "LOG_LEVEL=info", "LOG_FORMAT=json")
	if store == "redis" {
		cmd.Env = append(cmd.Env, redisVariables(t)...)
	}
	p, err := stack.StartCommand("ratelimit", cmd)
	if err != nil {
		t.Fatal(err)
	}
	endWithTest(t, p, p.Stop)
	ctx, cancel := context.WithTimeout(t.Context(), startTime)
	defer cancel()
	line := must(t)(p.Await(ctx, `"msg":"ready"`))
	var ready struct{ GRPC string }
	if err := json.Unmarshal([]byte(line), &ready); err != nil {
		t.Fatal(err)
	}
	_, text, err := net.SplitHostPort(ready.GRPC)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// redisVariables are the variables for the Redis of all tests, whose buckets
// are apart from all others'.
func redisVariables(t *testing.T) []string {
	t.Helper()
	need(t, stack.RedisPath)
	r, err := redis()
	if err != nil {
		t.Fatal(err)
	}
	return []string{
		"REDIS_SOCKET_TYPE=unix", "REDIS_URL=" + strings.TrimPrefix(r.URL, "unix://"),
		"REDIS_TIMEOUT=" + patience.String(), fmt.Sprintf("CACHE_KEY_PREFIX=e2e%d:", systems.Add(1)),
	}
}
