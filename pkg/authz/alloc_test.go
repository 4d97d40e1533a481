//go:build !race

// The race detector makes sync.Pool forget at random, so nothing is counted
// under it.

package authz_test

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/limiter/doortest"
)

// browsed is a request with the headers of a browser.
func browsed(t testing.TB) string {
	t.Helper()
	req := get("203.0.113.7", "/api/x")
	req.Attributes.Request.Http.Headers = map[string]string{}
	for i := range 20 {
		req.Attributes.Request.Http.Headers[fmt.Sprint("x-header-", i)] = "value"
	}
	text, err := proto.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What a request allocates is the answer, the numbers in it, its key, the
// caller in that, what applies, and what came of it; the number of its headers
// must not show.
func TestAnswerAllocates(t *testing.T) {
	s := server(t, doortest.Load(t, perIP), limiter.Options{})
	ctx, req := t.Context(), browsed(t)
	const most = 6
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
	s := server(b, doortest.Load(b, plenty), limiter.Options{})
	ctx, req := b.Context(), browsed(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := s.Answer(ctx, req); err != nil {
			b.Fatal(err)
		}
	}
}

const plenty = `
domain: edge
rules:
  - {name: all, match: {path: /*}, per: [ip], limits: [{rate: 1000000/1d}]}
`
