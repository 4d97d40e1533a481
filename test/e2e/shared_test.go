package e2e_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func sharedRedis(store string) setup {
	s := example("shared-redis", store)
	s.sluices = []int{sluicePort, secondSluice}
	return s
}

// Two processes that share a Redis admit together what one may.
func TestSharedRedis(t *testing.T) {
	t.Parallel()
	y := start(t, sharedRedis("redis"))
	c := y.from(anna, edgePort)
	c.admits(t, 5, http.MethodGet, "/hello")
	c.admits(t, 10, http.MethodGet, "/world")[10].obey(t, 10)
	c.admits(t, 5, http.MethodGet, "/hello")
	c.admits(t, 10, http.MethodGet, "/world")
	y.allDecided(t)
}

// The same two processes, each with a memory of its own, admit twice that.
func TestNotShared(t *testing.T) {
	t.Parallel()
	y := start(t, sharedRedis("memory"))
	c := y.from(anna, edgePort)
	c.admits(t, 10, http.MethodGet, "/hello")
	c.admits(t, 20, http.MethodGet, "/world")
	y.allDecided(t)
}

// allDecided wants that every extauthz has decided about requests.
func (y *system) allDecided(t *testing.T) {
	t.Helper()
	for i, e := range y.sluices {
		if !decided(t, e.Admin) {
			t.Errorf("extauthz %d of %d decided nothing, want them asked in turns", i+1, len(y.sluices))
		}
	}
}

// decided says whether the metrics at an admin address count a decision.
func decided(t *testing.T, admin string) bool {
	t.Helper()
	for line := range strings.Lines(scrape(t, admin)) {
		if name, n, _ := strings.Cut(strings.TrimSpace(line), "} "); strings.HasPrefix(name, "sluice_decisions_total{") && n != "0" {
			return true
		}
	}
	return false
}

// scrape returns the metrics at an admin address.
func scrape(t *testing.T, admin string) string {
	t.Helper()
	resp, err := http.Get("http://" + admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
