package authz

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/sluice-mesh/sluice/pkg/response"
)

// checkResponse says r in Envoy's words. Envoy allows by the status code
// alone: 0.
func checkResponse(r response.Response) *authv3.CheckResponse {
	resp := &authv3.CheckResponse{
		Status:          &rpcstatus.Status{Code: int32(r.Code)},
		DynamicMetadata: fields(r.Metadata),
	}
	if r.Allowed {
		resp.HttpResponse = &authv3.CheckResponse_OkResponse{
			OkResponse: &authv3.OkHttpResponse{ResponseHeadersToAdd: options(r.Headers)},
		}
		return resp
	}
	resp.HttpResponse = &authv3.CheckResponse_DeniedResponse{DeniedResponse: &authv3.DeniedHttpResponse{
		Status:  &typev3.HttpStatus{Code: typev3.StatusCode(r.Status)},
		Headers: options(r.Headers),
		Body:    r.Body,
	}}
	return resp
}

// options writes headers so that ours replace an upstream's of the same name,
// except those that add to it.
// The older field append stays unset: a denial would lose the header.
func options(hs []response.Header) []*corev3.HeaderValueOption {
	if len(hs) == 0 {
		return nil
	}
	headers := make([]corev3.HeaderValue, len(hs))
	opts := make([]corev3.HeaderValueOption, len(hs))
	list := make([]*corev3.HeaderValueOption, len(hs))
	for i, h := range hs {
		headers[i].Key, headers[i].Value = h.Name, h.Value
		opts[i].Header = &headers[i]
		opts[i].AppendAction = corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD
		if h.Adds() {
			opts[i].AppendAction = corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD
		}
		list[i] = &opts[i]
	}
	return list
}

// fields writes what is said of a decision as dynamic metadata.
func fields(facts []response.Header) *structpb.Struct {
	texts := make([]structpb.Value_StringValue, len(facts))
	values := make([]structpb.Value, len(facts))
	s := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(facts))}
	for i, f := range facts {
		texts[i].StringValue = f.Value
		values[i].Kind = &texts[i]
		s.Fields[f.Name] = &values[i]
	}
	return s
}
