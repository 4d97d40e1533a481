package server_test

import (
	"context"
	"errors"
	"testing"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-mesh/sluice/internal/server"
)

// A wired answers on the wire by the request's host.
type wired struct {
	authv3.UnimplementedAuthorizationServer
}

func (wired) Answer(_ context.Context, request string) (answer []byte, known bool, err error) {
	req := new(authv3.CheckRequest)
	if err := proto.Unmarshal([]byte(request), req); err != nil {
		return nil, false, nil
	}
	switch req.GetAttributes().GetRequest().GetHttp().GetHost() {
	case "known":
		answer, err = proto.Marshal(&authv3.CheckResponse{Status: &rpcstatus.Status{Code: 1}})
		return answer, true, err
	case "empty":
		return nil, true, nil
	case "late":
		return nil, true, status.Error(codes.DeadlineExceeded, "late")
	case "panic":
		panic(errors.New("x"))
	default:
		return nil, false, nil
	}
}

func (wired) Check(_ context.Context, req *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	return &authv3.CheckResponse{Status: &rpcstatus.Status{Code: 2, Message: req.GetAttributes().GetRequest().GetHttp().GetHost()}}, nil
}

// What a service answers on the wire passes as it is; what it leaves is read,
// and answered, as a message.
func TestAnswersOnTheWire(t *testing.T) {
	t.Parallel()
	panics := 0
	r := run(t, server.Options{Services: []server.Service{server.Authz(wired{})}, Panicked: func() { panics++ }})
	client := authv3.NewAuthorizationClient(r.conn)
	for _, tt := range []struct {
		host string
		want *rpcstatus.Status
		code codes.Code
	}{
		{"known", &rpcstatus.Status{Code: 1}, codes.OK},
		{"empty", nil, codes.OK},
		{"other", &rpcstatus.Status{Code: 2, Message: "other"}, codes.OK},
		{"late", nil, codes.DeadlineExceeded},
		{"panic", nil, codes.Internal},
		{"known", &rpcstatus.Status{Code: 1}, codes.OK},
	} {
		resp, err := client.Check(t.Context(), checkRequest(tt.host, "a", "b", "c"))
		if status.Code(err) != tt.code || !proto.Equal(resp.GetStatus(), tt.want) {
			t.Errorf("Check(%s) = %v, %v, want %v, %v", tt.host, resp.GetStatus(), err, tt.want, tt.code)
		}
	}
	if panics != 1 {
		t.Errorf("%d panics were told, want 1", panics)
	}
}
