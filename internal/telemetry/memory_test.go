package telemetry_test

import (
	"testing"

	"github.com/sluice-mesh/sluice/internal/telemetry"
)

// memory is a store that holds 7 buckets and had no room for 3.
type memory struct{}

func (memory) Len() int       { return 7 }
func (memory) Refused() int64 { return 3 }

func TestMemory(t *testing.T) {
	t.Parallel()
	m := telemetry.New(telemetry.Options{})
	m.Memory("memory", memory{})
	got := scrape(t, m, "")
	for name, want := range map[string]string{`sluice_memory_keys{store="memory"}`: "7", `sluice_memory_refused_total{store="memory"}`: "3"} {
		if got[name] != want {
			t.Errorf("%s = %q, want %q", name, got[name], want)
		}
	}
}

// standIn has 2 buckets to settle, has settled 5 tokens and forgotten 9.
type standIn struct{}

func (standIn) Owed() int        { return 2 }
func (standIn) Settled() int64   { return 5 }
func (standIn) Forgotten() int64 { return 9 }

func TestStandIn(t *testing.T) {
	t.Parallel()
	m := telemetry.New(telemetry.Options{})
	m.StandIn(standIn{})
	got := scrape(t, m, "")
	for name, want := range map[string]string{
		"sluice_local_unsettled_buckets": "2", "sluice_local_settled_tokens_total": "5", "sluice_local_forgotten_tokens_total": "9",
	} {
		if got[name] != want {
			t.Errorf("%s = %q, want %q", name, got[name], want)
		}
	}
}
