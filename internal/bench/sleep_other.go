//go:build !linux

package bench

import (
	"context"
	"time"
)

// sleepUntil sleeps until t or the end of ctx.
func sleepUntil(ctx context.Context, t time.Time) { sleep(ctx, time.Until(t)) }
