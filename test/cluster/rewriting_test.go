package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExpand(t *testing.T) {
	t.Parallel()
	env := map[string]string{"NAME": "limiter", "PORT": "9001"}
	for _, c := range []struct{ text, want string }{
		{"$(NAME):$(PORT)", "limiter:9001"},
		{"$(OTHER)", "$(OTHER)"},
		{"$$(NAME)", "$(NAME)"},
		{"$NAME", "$NAME"},
	} {
		if got := expand(c.text, env); got != c.want {
			t.Errorf("expand(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}

func TestHere(t *testing.T) {
	t.Parallel()
	w := &worker{dir: "/pods/uid", ip: "10.7.0.9", node: &Node{}}
	here := w.here(t.Context(), container{VolumeMounts: []mount{
		{Name: "policy", MountPath: "/etc/sluice/policy"}, {Name: "all", MountPath: "/etc/sluice/"}, {Name: "one", MountPath: "/one", SubPath: "a/b"},
	}})
	for _, c := range []struct{ text, want string }{
		{":9001", "127.7.0.9:9001"},
		{"--grpc-addr=:9001", "--grpc-addr=127.7.0.9:9001"},
		{"0.0.0.0:9001", "127.7.0.9:9001"},
		{"[::]:9001", "127.7.0.9:9001"},
		{"redis://127.0.0.1:6379/0", "redis://127.0.0.1:6379/0"}, // a server beside the cluster
		{"/etc/sluice/policy", "/pods/uid/volumes/policy"},
		{"--policy=/etc/sluice/policy/edge.yaml,/etc/sluice/x", "--policy=/pods/uid/volumes/policy/edge.yaml,/pods/uid/volumes/all/x"},
		{"/etc/sluice/policy-of-others", "/pods/uid/volumes/all/policy-of-others"},
		{"/one", "/pods/uid/volumes/one/a/b"},
		{"/ones", "/ones"},
		{"5m", "5m"},
	} {
		if got := here(c.text); got != c.want {
			t.Errorf("here(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}

// TestLay lays files down three times and reads them through the link, as a
// program does that follows a mounted ConfigMap.
func TestLay(t *testing.T) {
	t.Parallel()
	dir, w := t.TempDir(), &worker{}
	var data string
	for i, files := range []map[string]string{
		{"a.yaml": "1", "b.yaml": "1"},
		{"a.yaml": "2", "sub/c.yaml": "2"},
		{"a.yaml": "2", "sub/c.yaml": "2"}, // nothing changes
	} {
		if err := w.lay(dir, files); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(files, visible(t, dir)); diff != "" {
			t.Errorf("step %d: the files differ (-want +got):\n%s", i, diff)
		}
		now, err := os.Readlink(filepath.Join(dir, "..data"))
		if err != nil {
			t.Fatal(err)
		}
		if changed := now != data; changed != (i < 2) {
			t.Errorf("step %d: ..data was turned: %v, want %v", i, changed, i < 2)
		}
		data = now
	}
}

// visible returns the files in dir as their reader finds them.
func visible(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"[a-z]*.yaml", "sub/*.yaml"} {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			rel, err := filepath.Rel(dir, name)
			if err != nil {
				t.Fatal(err)
			}
			found[filepath.ToSlash(rel)] = string(text)
		}
	}
	return found
}
