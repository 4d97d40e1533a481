package rls

import (
	"testing"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func request(hits uint32, descriptors ...*commonv3.RateLimitDescriptor) *rlsv3.RateLimitRequest {
	return &rlsv3.RateLimitRequest{Domain: "edge", HitsAddend: hits, Descriptors: descriptors}
}

func described(texts ...string) *commonv3.RateLimitDescriptor {
	d := &commonv3.RateLimitDescriptor{}
	for i := 0; i < len(texts); i += 2 {
		d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{Key: texts[i], Value: texts[i+1]})
	}
	return d
}

// wanted says which requests are read here.
var wanted = map[string]struct {
	request *rlsv3.RateLimitRequest
	here    bool
}{
	"nothing":         {&rlsv3.RateLimitRequest{}, true},
	"an entry":        {request(0, described("user", "anna")), true},
	"many":            {request(1<<32-1, described("a", "", "b", "ä"), described(), described("", "")), true},
	"a limit":         {request(1, &commonv3.RateLimitDescriptor{Limit: &commonv3.RateLimitDescriptor_RateLimitOverride{}}), false},
	"hits of its own": {request(1, &commonv3.RateLimitDescriptor{HitsAddend: wrapperspb.UInt64(3)}), false},
	"a refund":        {request(1, &commonv3.RateLimitDescriptor{IsNegativeHits: true}), false},
}

func bytesOf(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestReadingLeavesWhatIsOdd(t *testing.T) {
	t.Parallel()
	for name, tt := range wanted {
		if got := newReading().(*reading).read(string(bytesOf(t, tt.request))); got != tt.here {
			t.Errorf("read(%s) = %v, want %v", name, got, tt.here)
		}
	}
}

// What is read here is what generated code reads, with nothing left of the
// request before.
func FuzzReading(f *testing.F) {
	for _, tt := range wanted {
		f.Add(bytesOf(f, tt.request))
	}
	f.Add([]byte("\x12\x06\x0a\x04\x0a\x02\xff\xfe"))
	r := newReading().(*reading)
	f.Fuzz(func(t *testing.T, data []byte) {
		want := new(rlsv3.RateLimitRequest)
		if err := proto.Unmarshal(data, want); r.read(string(data)) && err == nil {
			diff := cmp.Diff(want, &r.req, protocmp.Transform(), protocmp.IgnoreUnknown())
			if diff != "" {
				t.Errorf("what is read of %q (-generated code +here):\n%s", data, diff)
			}
		}
		if !r.reset() {
			r = newReading().(*reading)
		}
		if diff := cmp.Diff(new(rlsv3.RateLimitRequest), &r.req, protocmp.Transform()); diff != "" {
			t.Errorf("what is left of %q (-want +got):\n%s", data, diff)
		}
	})
}
