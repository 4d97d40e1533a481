package descriptors_test

import (
	"strings"
	"testing"

	"github.com/sluice-mesh/sluice/pkg/descriptors"
)

func values(name string) []descriptors.Value {
	ip := descriptors.Value{Kind: "ip", Text: "203.0.113.7"}
	switch name {
	case "ip":
		return []descriptors.Value{ip}
	case "hidden":
		return []descriptors.Value{ip, {Kind: "key", Text: strings.Repeat("s3cr3t", 8), Form: descriptors.Hidden}}
	case "cut":
		return []descriptors.Value{ip, fifty("a"), fifty("b"), fifty("c")}
	default:
		return []descriptors.Value{ip, {Kind: "key", Text: strings.Repeat("x", 8192), Form: descriptors.Hidden}}
	}
}

func BenchmarkKey(b *testing.B) {
	for _, name := range []string{"ip", "hidden", "cut", "huge"} {
		b.Run(name, func(b *testing.B) {
			k, vs := descriptors.NewKeyer([]byte("pepper")), values(name)
			b.ReportAllocs()
			for b.Loop() {
				k.Key("edge", "api", vs...)
			}
		})
	}
}

func TestKeyAllocatesItsStringOnly(t *testing.T) {
	k := descriptors.NewKeyer([]byte("pepper"))
	for _, name := range []string{"ip", "hidden", "cut", "huge"} {
		vs := values(name)
		if got := testing.AllocsPerRun(100, func() { k.Key("edge", "api", vs...) }); got > 1 {
			t.Errorf("Key of %s allocates %v times, want at most 1", name, got)
		}
	}
}
