package identity_test

import (
	"strings"
	"testing"

	"github.com/sluice-mesh/sluice/pkg/identity"
)

// Long headers cost time, never memory.
func TestIdentifyDoesNotAllocate(t *testing.T) {
	for name, header := range longHeaders() {
		for _, spec := range []identity.EdgeSpec{behind, {Hops: 9_000}} {
			edge, a := mustEdge(t, spec), from("10.0.0.5", xff(header))
			// An entry that is garbage may cost the parser's error, but ends the walk.
			if got := testing.AllocsPerRun(10, func() { edge.Identify(a) }); got > 2 {
				t.Errorf("Identify(%s) allocates %v times, want at most 2", name, got)
			}
		}
	}
}

func longHeaders() map[string]string {
	return map[string]string{
		"10,000 trusted":           strings.Repeat("10.0.0.3, ", 9_999) + "10.0.0.4",
		"10,000 trusted in IPv6":   strings.Repeat("[::ffff:10.0.0.3%eth0]:80,", 9_999) + "10.0.0.4",
		"100 kB of commas":         strings.Repeat(",", 100_000),
		"100 kB without one":       strings.Repeat("1", 100_000),
		"100 kB after a colon":     "1.1.1.1:" + strings.Repeat("0", 100_000),
		"100 kB of garbage, comma": strings.Repeat("x,", 50_000),
	}
}

func BenchmarkIdentify(b *testing.B) {
	headers := longHeaders()
	headers["none"], headers["two entries"] = "", "6.6.6.6, 203.0.113.7"
	for name, header := range headers {
		b.Run(name, func(b *testing.B) {
			edge, a := mustEdge(b, behind), from("10.0.0.5", xff(header))
			b.ReportAllocs()
			for b.Loop() {
				edge.Identify(a)
			}
		})
	}
}
