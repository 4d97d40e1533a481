// Package kube_test installs the chart in helm/ into a real Kubernetes and
// holds it to what its values promise: a real etcd, API server, controller
// manager and Helm, with our own program in the pods. make test-kube runs it.
package kube_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/test/cluster"
	"github.com/sluice-mesh/sluice/test/stack"
)

// startTime is the time that a cluster on a busy machine may take to start.
const startTime = 2 * time.Minute

func TestMain(m *testing.M) {
	// These need programs that take long to build, so that only make test-kube
	// asks for them.
	if os.Getenv("SLUICE_TEST_KUBE") == "" {
		fmt.Println("make test-kube runs these tests")
		os.Exit(0)
	}
	code := m.Run()
	end()
	os.Exit(code)
}

// What all tests share is made by the first that needs it.
var (
	shared struct {
		sync.Mutex
		dir     string
		cluster *cluster.Cluster
	}
	scratch = sync.OnceValues(func() (string, error) {
		dir, err := os.MkdirTemp("", "sluice-kube-")
		shared.Lock()
		defer shared.Unlock()
		shared.dir = dir
		return dir, err
	})
	extauthz = sync.OnceValues(func() (string, error) {
		dir, err := scratch()
		if err != nil {
			return "", err
		}
		return stack.BuildExtauthz(dir)
	})
	kubernetes = sync.OnceValues(startCluster)
)

func startCluster() (*cluster.Cluster, error) {
	dir, err := scratch()
	if err != nil {
		return nil, err
	}
	program, err := extauthz()
	if err != nil {
		return nil, err
	}
	root, err := stack.Root()
	if err != nil {
		return nil, err
	}
	tools := filepath.Join(root, ".tools")
	at := filepath.Join(dir, "cluster")
	if err := os.Mkdir(at, 0o755); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	c, err := cluster.Start(ctx, cluster.Options{
		Dir: at, APIServer: filepath.Join(tools, "kube-apiserver"), ControllerManager: filepath.Join(tools, "kube-controller-manager"),
		Images: images(program, tools),
	})
	shared.Lock()
	defer shared.Unlock()
	shared.cluster = c
	return c, err
}

// images are what pods are made of: our program, and the Valkey of trials.
func images(program, tools string) map[string]cluster.Image {
	ours := cluster.Program{Path: program}
	server := cluster.Program{
		Path: filepath.Join(tools, "valkey-server"),
		Args: func(address string, args []string) []string { return append(args, "--bind", address) },
	}
	client := cluster.Program{
		Path: "redis-cli",
		Args: func(address string, args []string) []string { return append([]string{"-h", address}, args...) },
	}
	return map[string]cluster.Image{
		"ghcr.io/sluice-mesh/sluice": {"": ours, "extauthz": ours, "ratelimit": ours},
		"docker.io/valkey/valkey":    {"valkey-server": server, "valkey-cli": client},
	}
}

func end() {
	shared.Lock()
	defer shared.Unlock()
	if shared.cluster != nil {
		shared.cluster.Close()
	}
	if shared.dir != "" {
		os.RemoveAll(shared.dir)
	}
}

// must is for what all tests share.
func must[T any](t *testing.T, do func() (T, error)) T {
	t.Helper()
	made, err := do()
	if err != nil {
		t.Fatal(err)
	}
	return made
}
