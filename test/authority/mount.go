package authority

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// A Mount is a folder with tls.crt, tls.key and ca.crt, as Kubernetes mounts a
// secret: links into a folder that a link leads to.
type Mount struct {
	Dir     string
	version int
}

// NewMount makes one with p, and the authority of the other side. It lasts as
// long as the test.
func NewMount(t testing.TB, p Pair, other *Authority) *Mount {
	t.Helper()
	m := &Mount{Dir: t.TempDir()}
	m.Change(t, p.CertPEM, p.KeyPEM, other.PEM)
	for _, name := range []string{"tls.crt", "tls.key", "ca.crt"} {
		if err := os.Symlink(filepath.Join("..data", name), m.Path(name)); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// Path is where a file is.
func (m *Mount) Path(name string) string { return filepath.Join(m.Dir, name) }

// Change replaces all files at once, by bending the link.
func (m *Mount) Change(t testing.TB, cert, key, ca []byte) {
	t.Helper()
	m.version++
	fresh := "..version" + strconv.Itoa(m.version)
	if err := os.Mkdir(m.Path(fresh), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"tls.crt": cert, "tls.key": key, "ca.crt": ca} {
		write(t, filepath.Join(m.Path(fresh), name), text)
	}
	old, _ := os.Readlink(m.Path("..data"))
	if err := os.Symlink(fresh, m.Path("..data_tmp")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(m.Path("..data_tmp"), m.Path("..data")); err != nil {
		t.Fatal(err)
	}
	if old != "" {
		os.RemoveAll(m.Path(old))
	}
}
