package servers

import (
	_ "embed"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

//go:embed clock.c.txt
var clockSource []byte

// A Clock is the time of day of the servers that are started with its Env. It
// can be set while they run. What they measure time spans with goes on as it
// is. It has no power over a program that is linked statically, as .tools'
// Valkey is.
type Clock struct {
	// Env is for Options.
	Env  []string
	file string
}

// NewClock returns a clock that is right. It needs a C compiler on Linux: where
// there is none the test is skipped, and in CI it fails.
func NewClock(t testing.TB) *Clock {
	t.Helper()
	dir := t.TempDir()
	source, library := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so")
	if err := os.WriteFile(source, clockSource, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-O1", "-o", library, source).CombinedOutput(); err != nil {
		if os.Getenv("CI") == "" {
			t.Skipf("a clock for servers cannot be compiled: %v\n%s", err, out)
		}
		t.Fatalf("compile a clock for servers: %v\n%s", err, out)
	}
	c := &Clock{file: filepath.Join(dir, "ahead")}
	c.Env = []string{"LD_PRELOAD=" + library, "CLOCK_FILE=" + c.file}
	c.Set(t, 0)
	return c
}

// Set has the clock be so much ahead of the right time, in whole seconds; with
// less than 0 it is behind.
func (c *Clock) Set(t testing.TB, ahead time.Duration) {
	t.Helper()
	f, err := os.OpenFile(c.file, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], uint64(int64(ahead/time.Second)))
	if _, err := f.WriteAt(b[:], 0); err != nil {
		t.Fatal(err)
	}
}
