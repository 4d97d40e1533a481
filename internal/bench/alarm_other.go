//go:build !linux

package bench

import (
	"context"
	"time"
)

// An alarm wakes one caller.
type alarm struct{}

func newAlarm(context.Context) *alarm { return &alarm{} }

// wait waits until t or the end of ctx.
func (*alarm) wait(ctx context.Context, t time.Time) { sleep(ctx, time.Until(t)) }

func (*alarm) close() {}
