package server_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/internal/server"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// A folder is policies that are followed, with what Load makes of each read.
type folder struct {
	policies *server.Policies
	reloads  chan error
}

var errBad = errors.New("bad")

// follow follows paths, of which file is the one that Load looks at: it is bad
// if it says so.
func follow(t *testing.T, file string, paths ...string) *folder {
	t.Helper()
	f := &folder{reloads: make(chan error, 100)}
	policies, err := server.NewPolicies(server.PoliciesOptions{
		Paths: paths,
		Load: func() (*policy.Set, error) {
			if text, err := os.ReadFile(file); err != nil || string(text) == "bad" {
				return nil, errBad
			}
			return new(policy.Set), nil
		},
		Reloaded: func(_ *policy.Set, err error) { f.reloads <- err },
	})
	if err != nil {
		t.Fatalf("NewPolicies = %v, want none", err)
	}
	f.policies = policies
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); policies.Run(ctx, nil) }()
	t.Cleanup(func() { cancel(); <-done })
	return f
}

func (f *folder) await(t *testing.T, what string, want error) {
	t.Helper()
	select {
	case got := <-f.reloads:
		if !errors.Is(got, want) {
			t.Errorf("%s: reload = %v, want %v", what, got, want)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("%s: no reload in 20s", what)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestPoliciesKeepTheLastGood(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "p.yaml")
	write(t, file, "good")
	f := follow(t, file, file)
	first := f.policies.Set()
	if first == nil {
		t.Fatal("Set = nil after NewPolicies, want a set")
	}
	write(t, file, "bad")
	f.await(t, "a bad policy", errBad)
	if err := f.policies.Err(); f.policies.Set() != first || !errors.Is(err, errBad) {
		t.Errorf("after a bad policy Set is the first: %v, Err = %v, want true, %v", f.policies.Set() == first, err, errBad)
	}
	write(t, file, "good again")
	f.await(t, "a good policy", nil)
	if err := f.policies.Err(); f.policies.Set() == first || err != nil {
		t.Errorf("after a good policy Set is the first: %v, Err = %v, want false, nil", f.policies.Set() == first, err)
	}
}

func TestPoliciesAreBadAtFirst(t *testing.T) {
	t.Parallel()
	_, err := server.NewPolicies(server.PoliciesOptions{Load: func() (*policy.Set, error) { return nil, errBad }})
	if !errors.Is(err, errBad) {
		t.Errorf("NewPolicies = %v, want Load's error", err)
	}
}

// Each way in which files change in the field is seen.
func TestPoliciesSeeChanges(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		make func(t *testing.T, dir string) (file, path string)
		edit func(t *testing.T, dir string)
	}{
		{
			name: "a file is renamed over it, as editors do",
			make: func(t *testing.T, dir string) (string, string) {
				write(t, dir+"/p.yaml", "1")
				return dir + "/p.yaml", dir + "/p.yaml"
			},
			edit: func(t *testing.T, dir string) {
				write(t, dir+"/p.yaml~", "2")
				must(t, os.Rename(dir+"/p.yaml~", dir+"/p.yaml"))
			},
		},
		{
			name: "a file is added to the folder",
			make: func(t *testing.T, dir string) (string, string) {
				write(t, dir+"/p.yaml", "1")
				return dir + "/p.yaml", dir
			},
			edit: func(t *testing.T, dir string) { write(t, dir+"/q.yml", "2") },
		},
		{
			name: "a file is taken out of the folder",
			make: func(t *testing.T, dir string) (string, string) {
				write(t, dir+"/p.yaml", "1")
				write(t, dir+"/q.yaml", "2")
				return dir + "/p.yaml", dir
			},
			edit: func(t *testing.T, dir string) { must(t, os.Remove(dir+"/q.yaml")) },
		},
		{
			name: "the file's link is bent to another folder, as a ConfigMap's",
			make: func(t *testing.T, dir string) (string, string) {
				write(t, dir+"/..1/p.yaml", "1")
				must(t, os.Symlink("..1", dir+"/..data"))
				must(t, os.Symlink("..data/p.yaml", dir+"/p.yaml"))
				return dir + "/p.yaml", dir
			},
			edit: func(t *testing.T, dir string) {
				write(t, dir+"/..2/p.yaml", "2")
				must(t, os.Symlink("..2", dir+"/..data_tmp"))
				must(t, os.Rename(dir+"/..data_tmp", dir+"/..data"))
				must(t, os.RemoveAll(dir+"/..1"))
			},
		},
		{
			name: "the target of a link in another folder is written",
			make: func(t *testing.T, dir string) (string, string) {
				write(t, dir+"/far/away.yaml", "1")
				must(t, os.MkdirAll(dir+"/near", 0o700))
				must(t, os.Symlink("../far/away.yaml", dir+"/near/p.yaml"))
				return dir + "/near/p.yaml", dir + "/near/p.yaml"
			},
			edit: func(t *testing.T, dir string) { write(t, dir+"/far/away.yaml", "2") },
		},
		{
			name: "the folder is made anew",
			make: func(t *testing.T, dir string) (string, string) {
				write(t, dir+"/in/p.yaml", "1")
				return dir + "/in/p.yaml", dir + "/in"
			},
			edit: func(t *testing.T, dir string) {
				write(t, dir+"/new/p.yaml", "2")
				must(t, os.Rename(dir+"/in", dir+"/old"))
				must(t, os.Rename(dir+"/new", dir+"/in"))
			},
		},
		{
			name: "the content alone changes, not its size nor its time",
			make: func(t *testing.T, dir string) (string, string) {
				write(t, dir+"/p.yaml", "1")
				must(t, os.Chtimes(dir+"/p.yaml", time.Unix(1, 0), time.Unix(1, 0)))
				return dir + "/p.yaml", dir + "/p.yaml"
			},
			edit: func(t *testing.T, dir string) {
				write(t, dir+"/p.yaml", "2")
				must(t, os.Chtimes(dir+"/p.yaml", time.Unix(1, 0), time.Unix(1, 0)))
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file, path := tt.make(t, dir)
			f := follow(t, file, path)
			tt.edit(t, dir)
			f.await(t, tt.name, nil)
		})
	}
}
