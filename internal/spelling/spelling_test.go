package spelling_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluice-mesh/sluice/internal/spelling"
)

func ExampleNearest() {
	fmt.Println(spelling.Nearest("brust", []string{"rate", "burst", "refill"}))
	// Output: burst
}

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"grpc-addr", "http-addr", "grpc-tls-client-ca", "store", "per"}
	for s, want := range map[string]string{
		"store":                  "store",
		"stroe":                  "store", // two neighbours swapped are one edit
		"stor":                   "store",
		"sstore":                 "store",
		"stare":                  "store",
		"grpcaddr":               "grpc-addr",
		"grpctlsclientca":        "grpc-tls-client-ca",
		"grpc.tls_client.cas":    "grpc-tls-client-ca",
		"-.-":                    "",
		"ttp-adr":                "http-addr", // two edits
		"tp-adr":                 "",          // three
		"pe":                     "per",
		"x":                      "", // a letter is a misspelling of none
		"":                       "",
		strings.Repeat("s", 1e6): "",
	} {
		if got := spelling.Nearest(s, known); got != want {
			t.Errorf("Nearest(%.40q) = %q, want %q", s, got, want)
		}
	}
}
