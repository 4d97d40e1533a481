// Package chaos_test breaks a real Redis in many ways while a real extauthz is
// under load, and wants every request answered as its rule's on_error says, and
// everything as before once Redis is well.
//
// Times are printed, and asserted only in bounds that a busy machine keeps.
// With -write the figures of the run are written into docs/reliability.md.
package chaos_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/test/stack"
)

var (
	// A busy machine is not to make the store late by itself.
	deadline = flag.Duration("deadline", 250*time.Millisecond, "the store's deadline")
	least    = flag.Int("least", 50, "requests of each kind while a fault lasts, at least")
	keys     = flag.Int("keys", 80_000, "how many keys there are at least, where memory is looked at")
	write    = flag.Bool("write", false, "write the figures into docs/reliability.md")
)

// patience bounds every wait for an event.
const patience = 30 * time.Second

var programs struct {
	dir   string
	build func() (string, error)
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "sluice-chaos-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	programs.dir = dir
	programs.build = sync.OnceValues(func() (string, error) { return stack.BuildExtauthz(dir) })
	code := m.Run()
	if code == 0 && *write {
		if err := writeFigures(filepath.Join("..", "..", "docs", "reliability.md")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}
