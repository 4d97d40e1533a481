package memstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// A failure says why a Store did not answer.
type failure struct {
	cause string
	err   error
}

// Cause is a word for a metric's label: full, canceled, timeout or other.
func (f *failure) Cause() string { return f.cause }

func (f *failure) Error() string { return f.err.Error() }

func (f *failure) Unwrap() error { return f.err }

var errFull = &failure{"full", errors.New("memory store is full of buckets that are in use")}

func check(ctx context.Context, charges []bucket.Charge, results []bucket.Result) error {
	switch err := ctx.Err(); {
	case errors.Is(err, context.DeadlineExceeded):
		return &failure{"timeout", err}
	case err != nil:
		return &failure{"canceled", err}
	case len(charges) != len(results):
		return &failure{"other", errors.New("charges and results differ in length")}
	}
	for i := range charges {
		switch {
		case charges[i].Limits == nil:
			return &failure{"other", errors.New("a charge has no limits")}
		case len(charges[i].Key) > MaxKeyLen:
			return &failure{"other", fmt.Errorf("a key has %d bytes, more than %d", len(charges[i].Key), MaxKeyLen)}
		}
	}
	return nil
}
