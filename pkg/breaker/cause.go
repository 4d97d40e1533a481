package breaker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// An OpenError is what a caller gets of a Breaker that is open.
type OpenError struct {
	// Since is when it opened.
	Since time.Time
	// Err is the store's last failure: of the call that opened the Breaker, or
	// of the last look.
	Err error
}

// Error says that the store was not asked, and its last failure.
func (e *OpenError) Error() string {
	return fmt.Sprintf("the store is not asked, it is away: %v", e.Err)
}

// Unwrap returns the store's last failure.
func (e *OpenError) Unwrap() error { return e.Err }

// Cause is "open". That of Err says why.
func (e *OpenError) Cause() string { return "open" }

const canceled = "canceled"

// errGaveUp is a call that says nothing of the store.
var errGaveUp = errors.New("the caller gave up")

// answered are the causes of errors that a store which is there answers. In
// some it takes no writes, but says still who is over a limit.
var answered = map[string]bool{
	"full": true, "readonly": true, "disk": true, "replicas": true,
	"foreign": true, "limits": true, "reply": true, "noscript": true, "moved": true, "closed": true,
}

func causeOf(err error) string {
	if err == nil {
		return ""
	}
	var c interface{ Cause() string }
	switch {
	case errors.As(err, &c):
		return c.Cause()
	case errors.Is(err, context.Canceled):
		return canceled
	default:
		return "other"
	}
}

// common returns an error if all results have one: then nothing was answered.
func common(results []bucket.Result) error {
	for i := range results {
		if err := results[i].Err; err == nil || answered[causeOf(err)] {
			return nil
		}
	}
	if len(results) == 0 {
		return nil
	}
	return results[0].Err
}
