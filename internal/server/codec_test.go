package server_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/sluice-mesh/sluice/internal/server"
)

// seen is a service that keeps what it was asked last.
type seen struct {
	authv3.UnimplementedAuthorizationServer
	last atomic.Pointer[authv3.CheckRequest]
}

func (s *seen) Check(_ context.Context, req *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	s.last.Store(req)
	return &authv3.CheckResponse{}, nil
}

// asIs sends bytes as they are.
type asIs struct{}

func (asIs) Name() string { return "proto" }

func (asIs) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (asIs) Unmarshal(mem.BufferSlice, any) error { return nil }

func checkRequest(host, header, value, key string) *authv3.CheckRequest {
	return &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{
			Host: host, Headers: map[string]string{header: value}, RawBody: []byte("\xff\xfe"),
		}},
		MetadataContext: &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{
			"filter": {Fields: map[string]*structpb.Value{key: structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue(value)}})}},
		}},
	}}
}

// A client that sends a byte which is no UTF-8 is answered like any other:
// an error would let it past an Envoy that fails open.
func TestTextsThatAreNotUTF8(t *testing.T) {
	t.Parallel()
	s := &seen{}
	r := run(t, server.Options{Services: []server.Service{server.Authz(s)}})
	for _, tt := range []struct{ sent, want string }{
		{"plain", "plain"},
		{"\xff", "!"},
		{"a\xff\xfeb", "a!!b"},
		{"\xe2\x82", "!!"},          // a rune cut short
		{"€\xc0\x80€", "€!!€"},      // overlong
		{"\xed\xa0\x80", "!!!"},     // a surrogate
		{"a\ufffd\x80", "a\ufffd!"}, // the replacement character is a text
		{strings.Repeat("\xff", 200), strings.Repeat("!", 200)},
	} {
		// Place holders of the same length are easy to send, and to swap in the bytes.
		hold := strings.Repeat("~", len(tt.sent))
		data, err := proto.Marshal(checkRequest(hold, hold, hold, hold))
		if err != nil {
			t.Fatal(err)
		}
		data = []byte(strings.ReplaceAll(string(data), hold, tt.sent))
		if err := r.conn.Invoke(t.Context(), authv3.Authorization_Check_FullMethodName, data, nil, grpc.ForceCodecV2(asIs{})); err != nil {
			t.Errorf("Check(%.20q) = %v, want an answer", tt.sent, err)
			continue
		}
		want := checkRequest(tt.want, tt.want, tt.want, tt.want)
		if diff := cmp.Diff(want, s.last.Load(), protocmp.Transform()); diff != "" {
			t.Errorf("Check(%.20q) reads otherwise (-want +got):\n%s", tt.sent, diff)
		}
	}
}

func TestMessagesThatAreNone(t *testing.T) {
	t.Parallel()
	r := run(t, server.Options{Services: []server.Service{server.Authz(&seen{})}})
	for _, data := range []string{"\x0a", "\x0a\x7f\xff", "\xff", "\x0a\x02\x22\x7f", deep()} {
		err := r.conn.Invoke(t.Context(), authv3.Authorization_Check_FullMethodName, []byte(data), nil, grpc.ForceCodecV2(asIs{}))
		if status.Code(err) != codes.Internal {
			t.Errorf("Check(%.20q) = %v, want Internal", data, err)
		}
	}
}

// deep returns a request whose metadata is lists in lists, deeper than can be
// read, with a text in the innermost that is no UTF-8.
func deep() string {
	const (
		attributes, metadata, key, value = 1, 11, 1, 2 // and key is any field 1
		text, list                       = 3, 6        // of a google.protobuf.Value
	)
	path := []protowire.Number{attributes, metadata, key, value, key, value}
	for range 6000 {
		path = append(path, list, key)
	}
	path = append(path, text)
	b := []byte("\xff")
	var heads [][]byte
	for n := len(b); len(path) > 0; path = path[:len(path)-1] {
		head := protowire.AppendTag(nil, path[len(path)-1], protowire.BytesType)
		head = protowire.AppendVarint(head, uint64(n))
		heads = append(heads, head)
		n += len(head)
	}
	slices.Reverse(heads)
	return string(append(bytes.Join(heads, nil), b...))
}
