//go:build compose

package compose_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-mesh/sluice/test/stack"
)

// up is the composition that all tests here share. Each has callers and users
// of its own.
var up *composition

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "compose:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	root, err := stack.Root()
	if err != nil {
		return 1, err
	}
	dir, err := os.MkdirTemp("", "sluice-compose")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if err := copyFolder(dir, filepath.Join(root, "compose")); err != nil {
		return 1, err
	}
	if up, err = newComposition(root, dir); err != nil {
		return 1, err
	}
	defer up.down()
	if err := up.start(); err != nil {
		return 1, err
	}
	code = m.Run()
	if code != 0 {
		fmt.Fprintln(os.Stderr, up.logs())
	}
	return code, nil
}

// copyFolder copies what compose mounts, with two changes: limits forget nothing
// while the tests run, since the periods of the policy are an hour here; and
// Envoy waits longer for an answer, so that a machine that is busy does not look
// like one that is broken.
func copyFolder(to, from string) error {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	// Who runs in a container is somebody else, whatever the umask here is.
	if err := filepath.WalkDir(to, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if d.IsDir() {
			mode = 0o755
		}
		return os.Chmod(path, mode)
	}); err != nil {
		return err
	}
	if err := edit(filepath.Join(to, "policy", "policy.yaml"), "/10s", "/1h", "/1m", "/1h"); err != nil {
		return err
	}
	return edit(filepath.Join(to, "envoy.yaml"), " 0.75s", " 10s", " 0.5s", " 5s", " 0.25s", " 5s")
}

func edit(file string, pairs ...string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(strings.NewReplacer(pairs...).Replace(string(text))), 0o644)
}
