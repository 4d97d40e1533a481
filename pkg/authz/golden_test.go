package authz_test

import (
	"context"
	"testing"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-mesh/sluice/pkg/authz"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/limiter/doortest"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

func TestGolden(t *testing.T) {
	t.Parallel()
	t.Run("messages", func(t *testing.T) {
		t.Parallel()
		golden(t, func(ctx context.Context, s *authz.Server, req *authv3.CheckRequest) (proto.Message, error) {
			return s.Check(ctx, req)
		})
	})
	t.Run("on the wire", func(t *testing.T) {
		t.Parallel()
		golden(t, answered)
	})
}

func golden(t *testing.T, ask func(context.Context, *authz.Server, *authv3.CheckRequest) (proto.Message, error)) {
	t.Helper()
	doortest.Golden(t, func(set *policy.Set, l *limiter.Limiter) doortest.Door {
		s := door(t, set, l)
		return doortest.Door{
			Request: new(authv3.CheckRequest),
			Answer: func(ctx context.Context, req proto.Message) (proto.Message, error) {
				return ask(ctx, s, req.(*authv3.CheckRequest))
			},
		}
	})
}

// answered asks on the wire, where that is known.
func answered(ctx context.Context, s *authz.Server, req *authv3.CheckRequest) (proto.Message, error) {
	text, err := proto.Marshal(req)
	if err != nil {
		return nil, err
	}
	answer, known, err := s.Answer(ctx, string(text))
	switch {
	case !known:
		return s.Check(ctx, req)
	case err != nil:
		return nil, err
	}
	resp := new(authv3.CheckResponse)
	return resp, proto.Unmarshal(answer, resp)
}
