package redisstore

import (
	"context"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// TakeEach makes the charges of several requests in one call.
func (s *Store) TakeEach(ctx context.Context, charges [][]bucket.Charge, results [][]bucket.Result) error {
	groups := make([]group, len(charges))
	for i := range groups {
		groups[i] = group{charges: charges[i], results: results[i]}
	}
	return s.takeAll(ctx, groups)
}

// Answered is the cause of an error that the server answered.
func Answered(text string) string { return answered(text) }
