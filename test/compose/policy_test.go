//go:build compose

package compose_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An edited policy holds, in place or replaced as editors do it; what was spent
// stays spent, and a fault changes nothing.
func TestPolicyIsEdited(t *testing.T) {
	file := filepath.Join(up.dir, "policy", "policy.yaml")
	published, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { write(t, file, string(published)); reloads(t, "1", "4") })
	with := func(rate string) string { return strings.Replace(string(published), "rate: 5/1h", "rate: "+rate, 1) }
	from := caller{address: "198.51.105.1"}
	spend := func(want tally) {
		t.Helper()
		if diff := cmp.Diff(want, many(t, 20, "GET", "/hello", func(int) caller { return from })); diff != "" {
			t.Errorf("20 × GET /hello: answers by status (-want +got):\n%s", diff)
		}
	}
	spend(tally{200: 5, 429: 15})

	write(t, file, with("7/1h"))
	eventually(t, "a denial says that the limit is 7", func() bool { return limit(t) == "7" })
	reloads(t, "1", "4")
	spend(tally{200: 2, 429: 18})

	write(t, file, with("seven"))
	reloads(t, "0", "4")
	spend(tally{429: 20})

	replace(t, file, strings.Replace(with("8/1h"), "name: search", "name: find", 1))
	reloads(t, "1", "4")
	spend(tally{200: 1, 429: 19})
}

// limit is what both replicas say the limit is, "" while they differ.
func limit(t *testing.T) string {
	t.Helper()
	said := map[string]bool{}
	for range 8 {
		said[caller{address: "198.51.105.2"}.ask(t, "GET", "/hello").header.Get("X-RateLimit-Limit")] = true
	}
	if len(said) != 1 {
		return ""
	}
	for l := range said {
		return l
	}
	return ""
}

// reloads waits until Prometheus has seen of both replicas whether the last
// policy is in use, and how many rules there are.
func reloads(t *testing.T, good, rules string) {
	t.Helper()
	eventually(t, "both replicas say of their last policy "+good+", with "+rules+" rules", func() bool {
		return cmp.Equal(query(t, `sluice_policy_last_reload_successful`), []string{good, good}) &&
			cmp.Equal(query(t, `sluice_policy_rules`), []string{rules, rules})
	})
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// replace puts a new file in the place of the old one.
func replace(t *testing.T, file, text string) {
	t.Helper()
	write(t, file+".new", text)
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}
