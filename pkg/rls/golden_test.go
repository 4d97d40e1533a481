package rls_test

import (
	"context"
	"testing"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/limiter/doortest"
	"github.com/sluice-mesh/sluice/pkg/policy"
	"github.com/sluice-mesh/sluice/pkg/rls"
)

func TestGolden(t *testing.T) {
	t.Parallel()
	t.Run("messages", func(t *testing.T) {
		t.Parallel()
		golden(t, func(ctx context.Context, s *rls.Server, req *rlsv3.RateLimitRequest) (proto.Message, error) {
			return s.ShouldRateLimit(ctx, req)
		})
	})
	t.Run("on the wire", func(t *testing.T) {
		t.Parallel()
		golden(t, answered)
	})
}

func golden(t *testing.T, ask func(context.Context, *rls.Server, *rlsv3.RateLimitRequest) (proto.Message, error)) {
	t.Helper()
	doortest.Golden(t, func(set *policy.Set, l *limiter.Limiter) doortest.Door {
		s := door(t, set, l)
		return doortest.Door{
			Request: new(rlsv3.RateLimitRequest),
			Answer: func(ctx context.Context, req proto.Message) (proto.Message, error) {
				return ask(ctx, s, req.(*rlsv3.RateLimitRequest))
			},
		}
	})
}

// answered asks on the wire, where that is known.
func answered(ctx context.Context, s *rls.Server, req *rlsv3.RateLimitRequest) (proto.Message, error) {
	text, err := proto.Marshal(req)
	if err != nil {
		return nil, err
	}
	answer, known, err := s.Answer(ctx, string(text))
	switch {
	case !known:
		return s.ShouldRateLimit(ctx, req)
	case err != nil:
		return nil, err
	}
	resp := new(rlsv3.RateLimitResponse)
	return resp, proto.Unmarshal(answer, resp)
}
