package rls_test

import (
	"strconv"
	"strings"
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/limiter/doortest"
)

const repeating = `
domain: mesh
rules:
  - name: a
    descriptor: [a]
    limits: [{rate: 10/1h}]
    deny: {body: '{rule} {path} {host}'}
  - name: b
    descriptor: [a, b=x]
    limits: [{rate: 1/1s}]
headers: {style: both}
`

func TestMalformedIsAnswered(t *testing.T) {
	t.Parallel()
	of := func(ds ...*commonv3.RateLimitDescriptor) *rlsv3.RateLimitRequest {
		return &rlsv3.RateLimitRequest{Domain: "mesh", Descriptors: ds, HitsAddend: 11}
	}
	for name, req := range map[string]*rlsv3.RateLimitRequest{
		"nil descriptor":  of(nil),
		"no entries":      of(&commonv3.RateLimitDescriptor{}),
		"nil entry":       of(&commonv3.RateLimitDescriptor{Entries: []*commonv3.RateLimitDescriptor_Entry{nil}}),
		"empty override":  of(&commonv3.RateLimitDescriptor{Limit: &commonv3.RateLimitDescriptor_RateLimitOverride{}}),
		"not UTF-8":       of(descriptor("a", "\xff\x00\r\n"), descriptor("\xff", "")),
		"100 kB":          of(descriptor("a", strings.Repeat("a", 100<<10))),
		"thousands deep":  of(descriptor(make([]string, 20_000)...)),
		"unknown domain":  {Domain: "\r\nx: \xff", Descriptors: []*commonv3.RateLimitDescriptor{descriptor("a", "")}},
		"a unit unheard":  of(&commonv3.RateLimitDescriptor{Entries: descriptor("a", "u").Entries, Limit: &commonv3.RateLimitDescriptor_RateLimitOverride{Unit: 99}}),
		"ten thousand":    of(thousands(10)...),
		"one of each key": of(descriptor("a", "1"), descriptor("a", "1", "b", "x"), descriptor("b", "x")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := server(t, doortest.Load(t, repeating), limiter.Options{})
			resp, err := s.ShouldRateLimit(t.Context(), req)
			if err != nil {
				t.Fatalf("ShouldRateLimit(%s) = %v, want no error", name, err)
			}
			safe(t, req, resp)
		})
	}
}

// thousands are n thousand descriptors of as many buckets, and each twice.
func thousands(n int) []*commonv3.RateLimitDescriptor {
	ds := make([]*commonv3.RateLimitDescriptor, 0, 1000*n)
	for i := range 500 * n {
		d := descriptor("a", strconv.Itoa(i))
		ds = append(ds, d, d)
	}
	return ds
}

// safe wants resp to be one that can be sent, with a status a descriptor, that
// denies only for a descriptor that lacks, and does Envoy no harm.
func safe(t *testing.T, req *rlsv3.RateLimitRequest, resp *rlsv3.RateLimitResponse) {
	t.Helper()
	if _, err := proto.Marshal(resp); err != nil {
		t.Errorf("ShouldRateLimit() = %v, want a message that can be sent: %v", resp, err)
	}
	if got, want := len(resp.GetStatuses()), len(req.GetDescriptors()); got != want {
		t.Errorf("ShouldRateLimit() = %d statuses, want %d", got, want)
	}
	over := rlsv3.RateLimitResponse_OK
	for _, s := range resp.GetStatuses() {
		over = max(over, s.GetCode())
		if s.GetDurationUntilReset().GetNanos() != 0 {
			t.Errorf("ShouldRateLimit() = status %v, want whole seconds", s)
		}
	}
	if resp.GetOverallCode() != over {
		t.Errorf("ShouldRateLimit() = %v, want %v, the worst of the statuses", resp.GetOverallCode(), over)
	}
	for _, h := range resp.GetResponseHeadersToAdd() {
		if strings.ContainsFunc(h.GetValue(), func(r rune) bool { return r < ' ' || r > '~' }) || len(h.GetRawValue()) > 0 {
			t.Errorf("ShouldRateLimit() has header %v, want no control byte", h)
		}
	}
}

// Whatever bytes come, a request that they make is answered.
func FuzzShouldRateLimit(f *testing.F) {
	override := &commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 1, Unit: 2}
	for _, ds := range [][]*commonv3.RateLimitDescriptor{
		nil,
		{descriptor("a", "1")},
		{descriptor("a", "1", "b", "x"), descriptor("a", "1")},
		{{Entries: descriptor("a", "1").Entries, Limit: override, IsNegativeHits: true}, descriptor("a", "1")},
	} {
		seed, err := proto.Marshal(&rlsv3.RateLimitRequest{Domain: "mesh", Descriptors: ds, HitsAddend: 3})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(seed)
	}
	set := doortest.Load(f, repeating)
	f.Fuzz(func(t *testing.T, data []byte) {
		req := new(rlsv3.RateLimitRequest)
		if proto.Unmarshal(data, req) != nil || req.GetDomain() == "" || len(req.GetDescriptors()) == 0 {
			return
		}
		s := server(t, set, limiter.Options{})
		for range 2 {
			resp, err := s.ShouldRateLimit(t.Context(), req)
			if err != nil && len(req.GetDescriptors()) <= 16384 {
				t.Fatalf("ShouldRateLimit(%v) = %v, want no error", req, err)
			}
			if err == nil {
				safe(t, req, resp)
			}
		}
	})
}

func BenchmarkShouldRateLimit(b *testing.B) {
	s := server(b, doortest.Load(b, repeating), limiter.Options{})
	ctx, req := b.Context(), &rlsv3.RateLimitRequest{Domain: "mesh", Descriptors: []*commonv3.RateLimitDescriptor{descriptor("a", "1")}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.ShouldRateLimit(ctx, req); err != nil {
			b.Fatal(err)
		}
	}
}
