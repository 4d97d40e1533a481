package bench

import (
	"testing"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
)

// FuzzVerdict holds verdicts to the generated decoder: what that can read has
// the same verdict, and what is no message has none.
func FuzzVerdict(f *testing.F) {
	for _, m := range []proto.Message{
		&rlsv3.RateLimitResponse{OverallCode: rlsv3.RateLimitResponse_OVER_LIMIT, RawBody: []byte("slow down")},
		&rlsv3.RateLimitResponse{Statuses: []*rlsv3.RateLimitResponse_DescriptorStatus{{Code: rlsv3.RateLimitResponse_OK}}},
		&authv3.CheckResponse{Status: &rpcstatus.Status{Code: 8, Message: "no"}},
		&authv3.CheckResponse{HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{}}},
	} {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(append(data, data...))
	}
	f.Add([]byte("\x0a\x02\x08\x07\x0a\x02\x12\x00"))             // a status in two parts
	f.Add([]byte("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")) // -1
	f.Add([]byte("\x08\x80\x80\x80\x80\x10"))                     // of which 32 bits are 0
	f.Add([]byte("\x0b\x08\x01\x0c\x08\x02"))                     // a group of the same number
	f.Add([]byte("\x08"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var limits rlsv3.RateLimitResponse
		got, err := verdictOf(data, 1)
		if proto.Unmarshal(data, &limits) == nil && (err != nil || int32(got) != int32(limits.GetOverallCode())) {
			t.Errorf("the verdict of %q = %d, %v, want %d", data, int32(got), err, limits.GetOverallCode())
		}
		var check authv3.CheckResponse
		got, err = verdictOf(data, 1, 1)
		if proto.Unmarshal(data, &check) == nil && (err != nil || int32(got) != check.GetStatus().GetCode()) {
			t.Errorf("the verdict of %q = %d, %v, want %d", data, int32(got), err, check.GetStatus().GetCode())
		}
		if cut := proto.Unmarshal(data, &emptypb.Empty{}); err == nil && cut != nil {
			t.Errorf("the verdict of %q = %d, want an error: %v", data, got, cut)
		}
	})
}

func verdictOf(data []byte, path ...protowire.Number) (uint64, error) {
	v := verdict{path: path}
	err := verdictCodec{}.Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, &v)
	return v.value, err
}
