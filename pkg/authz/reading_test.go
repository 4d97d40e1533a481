package authz

import (
	"net/netip"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluice-mesh/sluice/pkg/identity"
	"github.com/sluice-mesh/sluice/pkg/response"
)

// full is a request with all that Envoy sends.
func full() *authv3.CheckRequest {
	socket := func(text string) *corev3.Address {
		return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
			Address: text, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 40000},
		}}}
	}
	return &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Source:      &authv3.AttributeContext_Peer{Address: socket("203.0.113.7"), Service: "web", Labels: map[string]string{"a": "b"}, Principal: "spiffe://x/y"},
		Destination: &authv3.AttributeContext_Peer{Address: socket("10.0.0.1"), Principal: "server"},
		Request: &authv3.AttributeContext_Request{
			Time: &timestamppb.Timestamp{Seconds: 1_700_000_000, Nanos: 5},
			Http: &authv3.AttributeContext_HttpRequest{
				Id: "7", Method: "GET", Path: "/a?b=c", Host: "h", Scheme: "https", Query: "q", Fragment: "f", Size: -1, Protocol: "HTTP/2", Body: "b", RawBody: []byte("\xff"),
				Headers: map[string]string{":path": "/a?b=c", "x-user": "ä", "empty": ""},
			},
		},
		ContextExtensions: map[string]string{"domain": "edge", "": "x"},
		MetadataContext:   &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"f": {Fields: map[string]*structpb.Value{"k": structpb.NewStringValue("v")}}}},
		TlsSession:        &authv3.AttributeContext_TLSSession{Sni: "sni"},
	}}
}

// odd are requests that are read by generated code.
func odd(t testing.TB) map[string][]byte {
	t.Helper()
	with := func(change func(*authv3.AttributeContext)) []byte {
		req := full()
		change(req.GetAttributes())
		return marshal(t, req)
	}
	twice := append(marshal(t, full()), marshal(t, full())...)
	return map[string][]byte{
		"raw lines":            with(func(a *authv3.AttributeContext) { a.Request.Http.HeaderMap = &corev3.HeaderMap{} }),
		"a name in upper case": with(func(a *authv3.AttributeContext) { a.Request.Http.Headers["X-User"] = "" }),
		"a name beyond ASCII":  with(func(a *authv3.AttributeContext) { a.Request.Http.Headers["É"] = "" }),
		"an internal address": with(func(a *authv3.AttributeContext) {
			a.Source.Address = &corev3.Address{Address: &corev3.Address_EnvoyInternalAddress{EnvoyInternalAddress: &corev3.EnvoyInternalAddress{}}}
		}),
		"everything twice": twice,
		"no field":         {0x0d},
		"a group":          {0x0b, 0x0c},
	}
}

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestReadingLeavesWhatIsOdd(t *testing.T) {
	t.Parallel()
	for name, text := range odd(t) {
		if r := newReading().(*reading); r.read(string(text)) {
			t.Errorf("read(%s) = true, want it left to generated code", name)
		}
	}
	if r := newReading().(*reading); !r.read(string(marshal(t, full()))) {
		t.Error("read(all that Envoy sends) = false, want it read")
	}
}

// What is read here is what generated code reads. A reading is used again, so
// nothing may be left of the request before.
func FuzzReading(f *testing.F) {
	f.Add(marshal(f, full()))
	for _, text := range odd(f) {
		f.Add(text)
	}
	pipe := full()
	pipe.GetAttributes().GetSource().Address = &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: "p"}}}
	f.Add(marshal(f, pipe))
	r := newReading().(*reading)
	if !r.read(string(marshal(f, full()))) || !r.reset() {
		f.Fatal("a full request is not read, want it read and forgotten")
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		known := r.read(string(data))
		got := r.attrs
		want := new(authv3.CheckRequest)
		if err := proto.Unmarshal(data, want); known && err == nil {
			options := cmp.Options{cmpopts.EquateEmpty(), cmpopts.EquateNaNs(), cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(time.Time.Equal)}
			if diff := cmp.Diff(attributes(want.GetAttributes()), &got, options); diff != "" {
				t.Errorf("what is read of %q (-generated code +here):\n%s", data, diff)
			}
		}
		if !r.reset() {
			r = newReading().(*reading)
		}
		if diff := cmp.Diff(identity.Attributes{}, r.attrs, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
			t.Errorf("what is left of %q (-want +got):\n%s", data, diff)
		}
	})
}

// What is written is what generated code reads as the message that is meant.
func TestAppendResponse(t *testing.T) {
	t.Parallel()
	headers := []response.Header{{Name: "X-A", Value: "1"}, {Name: "Access-Control-Expose-Headers", Value: "X-A"}, {Name: "empty"}}
	options := []*corev3.HeaderValueOption{
		{Header: &corev3.HeaderValue{Key: "X-A", Value: "1"}, AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD},
		{Header: &corev3.HeaderValue{Key: "Access-Control-Expose-Headers", Value: "X-A"}, AppendAction: corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD},
		{Header: &corev3.HeaderValue{Key: "empty"}, AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD},
	}
	facts := &structpb.Struct{Fields: map[string]*structpb.Value{"rule": structpb.NewStringValue("a"), "empty": structpb.NewStringValue("")}}
	for name, tt := range map[string]struct {
		response response.Response
		want     *authv3.CheckResponse
	}{
		"allowed": {
			response.Response{Allowed: true, Status: 200, Headers: headers, Metadata: []response.Header{{Name: "rule", Value: "a"}, {Name: "empty"}}},
			&authv3.CheckResponse{
				Status: &rpcstatus.Status{}, DynamicMetadata: facts,
				HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{ResponseHeadersToAdd: options}},
			},
		},
		"allowed without a word": {
			response.Response{Allowed: true},
			&authv3.CheckResponse{Status: &rpcstatus.Status{}, DynamicMetadata: &structpb.Struct{}, HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{}}},
		},
		"denied": {
			response.Response{Status: 429, Code: 8, Headers: headers, Body: "no"},
			&authv3.CheckResponse{
				Status: &rpcstatus.Status{Code: 8}, DynamicMetadata: &structpb.Struct{},
				HttpResponse: &authv3.CheckResponse_DeniedResponse{DeniedResponse: &authv3.DeniedHttpResponse{
					Status: &typev3.HttpStatus{Code: 429}, Headers: options, Body: "no",
				}},
			},
		},
	} {
		got := new(authv3.CheckResponse)
		if err := proto.Unmarshal(appendResponse(nil, &tt.response), got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, got, protocmp.Transform()); diff != "" {
			t.Errorf("appendResponse(%s) (-want +got):\n%s", name, diff)
		}
	}
}
