//go:build !race

// The race detector makes sync.Pool forget at random, so nothing is counted
// under it.

package rls_test

import (
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/limiter/doortest"
)

func wired(t testing.TB) string {
	t.Helper()
	text, err := proto.Marshal(&rlsv3.RateLimitRequest{Domain: "mesh", Descriptors: []*commonv3.RateLimitDescriptor{descriptor("a", "1")}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What a request allocates is the answer, the numbers in it, the bucket's key,
// what applies, and what came of that.
func TestAnswerAllocates(t *testing.T) {
	s := server(t, doortest.Load(t, mesh), limiter.Options{})
	ctx, req := t.Context(), wired(t)
	const most = 5
	got := testing.AllocsPerRun(1000, func() {
		if _, known, err := s.Answer(ctx, req); !known || err != nil {
			t.Fatal(known, err)
		}
	})
	if got > most {
		t.Errorf("Answer() allocates %v times, want at most %d", got, most)
	}
}

func BenchmarkAnswer(b *testing.B) {
	s := server(b, doortest.Load(b, `
domain: mesh
rules: [{name: a, descriptor: [a], limits: [{rate: 1000000/1d}]}]
`), limiter.Options{})
	ctx, req := b.Context(), wired(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := s.Answer(ctx, req); err != nil {
			b.Fatal(err)
		}
	}
}
