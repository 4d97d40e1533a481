package server

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// linked makes a folder in which data is a link to one, where p.yaml is, and
// returns the path of p.yaml through the link.
func linked(t *testing.T) (dir, path string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	for _, name := range []string{"one", "two"} {
		check(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		check(t, os.WriteFile(filepath.Join(dir, name, "p.yaml"), nil, 0o600))
	}
	check(t, os.Symlink("one", filepath.Join(dir, "data")))
	check(t, os.Symlink("two", filepath.Join(dir, "other")))
	return dir, filepath.Join(dir, "data", "p.yaml")
}

func watching(t *testing.T, path string) *watch {
	t.Helper()
	w := newWatch(func(err error) { t.Errorf("watch: %v, want no error", err) })
	t.Cleanup(w.close)
	w.follow([]string{path})
	return w
}

func TestWatchHints(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(dir string) error{
		"it is written":  func(dir string) error { return os.WriteFile(dir+"/one/p.yaml", []byte("x"), 0o600) },
		"it is replaced": func(dir string) error { return os.Rename(dir+"/two/p.yaml", dir+"/one/p.yaml") },
		"it is removed":  func(dir string) error { return os.Remove(dir + "/one/p.yaml") },
		"a link to its folder is bent": func(dir string) error {
			return os.Rename(dir+"/other", dir+"/data")
		},
	} {
		dir, path := linked(t)
		w := watching(t, path)
		check(t, edit(dir))
		select {
		case <-w.hints:
		case <-time.After(20 * time.Second):
			t.Errorf("%s: no hint in 20s, want one", name)
		}
	}
}

// A link that is bent takes the watch with it.
func TestWatchFollowsLinks(t *testing.T) {
	t.Parallel()
	dir, path := linked(t)
	w := watching(t, path)
	check(t, os.Rename(dir+"/other", dir+"/data"))
	w.follow([]string{path})
	got := w.notify.WatchList()
	if !slices.Contains(got, dir+"/two") || slices.Contains(got, dir+"/one") {
		t.Errorf("after the link was bent %q are watched, want two and not one", got)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWatchSaysWhatItCannot(t *testing.T) {
	t.Parallel()
	var failed []error
	w := newWatch(func(err error) { failed = append(failed, err) })
	defer w.close()
	w.follow([]string{filepath.Join(t.TempDir(), "no", "such", "p.yaml")})
	if len(failed) > 0 {
		t.Errorf("follow(a path that is not there) fails with %v, want silence: the policy's fault says it", failed)
	}
}

// Reading a pipe would take from it what the policy is read from.
func TestStampLeavesPipesAlone(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	check(t, err)
	defer r.Close()
	_, err = w.WriteString("domain: edge")
	check(t, err)
	check(t, w.Close())
	path := "/dev/fd/" + strconv.Itoa(int(r.Fd()))
	if _, err := os.Stat(path); err != nil {
		t.Skip("no /dev/fd here")
	}
	stampOf([]string{path})
	if text, err := os.ReadFile(path); err != nil || string(text) != "domain: edge" {
		t.Errorf("after stampOf(%s) it holds %q, %v, want its text", path, text, err)
	}
}

// BenchmarkStamp looks at a large policy, as is done several times a second.
func BenchmarkStamp(b *testing.B) {
	path := filepath.Join(b.TempDir(), "p.yaml")
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		stampOf([]string{path})
	}
}
