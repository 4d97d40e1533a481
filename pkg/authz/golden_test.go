package authz_test

import (
	"context"
	"testing"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/limiter/doortest"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

func TestGolden(t *testing.T) {
	t.Parallel()
	doortest.Golden(t, func(set *policy.Set, l *limiter.Limiter) doortest.Door {
		s := door(t, set, l)
		return doortest.Door{
			Request: new(authv3.CheckRequest),
			Answer: func(ctx context.Context, req proto.Message) (proto.Message, error) {
				return s.Check(ctx, req.(*authv3.CheckRequest))
			},
		}
	})
}
