package authz

import (
	"net/netip"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/sluice-mesh/sluice/pkg/identity"
)

func TestAttributes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		json string
		want identity.Attributes
	}{
		"nothing":       {`{}`, identity.Attributes{}},
		"nothing in it": {`{"source":{"address":{}},"request":{"http":{}},"metadataContext":{}}`, identity.Attributes{}},
		"a request as Envoy sends it": {
			`{"source":{"address":{"socketAddress":{"address":"127.0.0.5","portValue":40000}},"principal":"spiffe://td/client"},
			  "request":{"time":"2030-01-02T03:04:05.000000006Z","http":{"id":"77","scheme":"https","protocol":"HTTP/2","size":"42","method":"GET","path":"/a/b%2Fc//d/../e%41?x=1","host":"example.com:8080","headers":{":path":"/a","x-user-id":"a,b","x-empty":""}}},
			  "contextExtensions":{"domain":"edge"}}`,
			identity.Attributes{
				Method: "GET", Path: "/a/b%2Fc//d/../e%41?x=1", Host: "example.com:8080",
				Scheme: "https", Protocol: "HTTP/2", ID: "77", Size: 42, Time: time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC),
				Headers: map[string]string{":path": "/a", "x-user-id": "a,b", "x-empty": ""},
				Source:  netip.MustParseAddr("127.0.0.5"), Principal: "spiffe://td/client",
				Context: map[string]string{"domain": "edge"},
			},
		},
		"a v6 peer":               {`{"source":{"address":{"socketAddress":{"address":"2001:db8::1"}}}}`, identity.Attributes{Source: netip.MustParseAddr("2001:db8::1")}},
		"a pipe":                  {`{"source":{"address":{"pipe":{"path":"/run/e.sock"}}}}`, identity.Attributes{Pipe: true}},
		"an internal listener":    {`{"source":{"address":{"envoyInternalAddress":{"serverListenerName":"x"}}}}`, identity.Attributes{}},
		"an address that is none": {`{"source":{"address":{"socketAddress":{"address":"localhost"}}}}`, identity.Attributes{}},
		"raw header lines": {
			// YWI= is ab, /w== is a byte that is no UTF-8
			`{"request":{"http":{"headerMap":{"headers":[
			  {"key":"x-forwarded-for","rawValue":"YWI="},{"key":"a","value":"v"},{"key":"X-Forwarded-For","rawValue":"/w=="},{"key":"x-forwarded-for"}]}}}}`,
			identity.Attributes{Headers: map[string]string{"x-forwarded-for": "ab,\xff,", "a": "v"}},
		},
		"raw lines beside the map": {
			`{"request":{"http":{"headers":{"A":"1"},"headerMap":{"headers":[{"key":"a","value":"2"}]}}}}`,
			identity.Attributes{Headers: map[string]string{"a": "1,2"}},
		},
		"names in upper case": {`{"request":{"http":{"headers":{"X-User-ID":"u"}}}}`, identity.Attributes{Headers: map[string]string{"x-user-id": "u"}}},
		"dynamic metadata": {
			`{"metadataContext":{"filterMetadata":{"envoy.filters.http.jwt_authn":{"payload":{"org_id":"o","roles":["a",1,true,null]}},"empty":{}}}}`,
			identity.Attributes{Metadata: map[string]map[string]any{
				"envoy.filters.http.jwt_authn": {"payload": map[string]any{"org_id": "o", "roles": []any{"a", 1.0, true, nil}}},
				"empty":                        {},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ac := new(authv3.AttributeContext)
			if err := protojson.Unmarshal([]byte(tc.json), ac); err != nil {
				t.Fatal(err)
			}
			got := attributes(ac)
			if diff := cmp.Diff(&tc.want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
				t.Errorf("attributes(%s) (-want +got):\n%s", tc.json, diff)
			}
		})
	}
}

func TestAttributesOfNil(t *testing.T) {
	t.Parallel()
	nilLine := &corev3.HeaderMap{Headers: []*corev3.HeaderValue{nil}}
	for name, ac := range map[string]*authv3.AttributeContext{
		"nil":           nil,
		"a nil line":    {Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{HeaderMap: nilLine}}},
		"a nil address": {Source: &authv3.AttributeContext_Peer{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{}}}},
		"a nil pipe":    {Source: &authv3.AttributeContext_Peer{Address: &corev3.Address{Address: &corev3.Address_Pipe{}}}},
		"a nil struct":  {MetadataContext: &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"f": nil}}},
	} {
		if got := attributes(ac); got.Source.IsValid() || got.Pipe {
			t.Errorf("attributes(%s) = %+v, want no source", name, got)
		}
	}
}

func TestStamps(t *testing.T) {
	t.Parallel()
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("X-Client-IP", "9.9.9.9", "twice", "a", "twice", "b"))
	for name, want := range map[string]map[string]string{
		"x-client-ip": {"x-client-ip": "9.9.9.9"}, "twice": {"twice": "a,b"}, "none": nil,
	} {
		if diff := cmp.Diff(want, stamps(ctx, name)); diff != "" {
			t.Errorf("stamps(%s) (-want +got):\n%s", name, diff)
		}
	}
}
