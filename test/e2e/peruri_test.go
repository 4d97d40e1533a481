package e2e_test

import (
	"net/http"
	"testing"
	"time"
)

func TestPerURI(t *testing.T) {
	t.Parallel()
	onEachStore(t, "per-uri", func(t *testing.T, y *system) {
		c := y.from(anna, edgePort)
		for _, path := range []string{"/sliding/a", "/sliding/b", "/greedy/a", "/greedy/b"} {
			c.admits(t, 10, http.MethodGet, path)
		}
		y.from(ben, edgePort).admits(t, 10, http.MethodGet, "/sliding/a")

		// The tokens of aligned are back when the minute ends, which must not
		// be while they are counted.
		awayFromTheEdge()
		denied := c.admits(t, 10, http.MethodGet, "/aligned/a")[11]
		if wait, left := denied.number(t, "Retry-After"), 60-time.Now().Second(); wait < left || wait > left+2 {
			t.Errorf("Retry-After: %d, want the %d seconds until the minute ends", wait, left)
		}
	})
}

// awayFromTheEdge returns when the minute has 10 seconds left or more.
func awayFromTheEdge() {
	if left := time.Minute - time.Duration(time.Now().UnixNano())%time.Minute; left < 10*time.Second {
		time.Sleep(left)
	}
}
