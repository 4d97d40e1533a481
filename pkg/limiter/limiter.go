// Package limiter decides: it takes the rules that apply to a request, charges
// their buckets in a store, and makes of the results, of shadow rules and of a
// store that fails one decision.
//
// It knows nothing of the wire: the doors turn its decisions into answers.
package limiter

import (
	"context"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// A Store keeps buckets. It is safe for concurrent use.
type Store interface {
	// Take makes the charges of one request and sets results[i] for
	// charges[i]; the two have one length. The charges that are not Shadow
	// are one group: all are made or none. Costs on one key are summed first.
	// After a group that passes, each Shadow charge is made alone if its
	// bucket has room; after one that does not, none is. On an error nothing
	// is known of any charge and results means nothing.
	Take(ctx context.Context, charges []bucket.Charge, results []bucket.Result) error
}

// A Decision is the answer to one request.
type Decision struct {
	Allowed bool
	Reason  Reason
	// Applied and Results belong together, in the file's order. Results is
	// nil when no store was asked.
	Applied []policy.Applied
	Results []bucket.Result
	// Deciding is the place of the rule that decided, -1 if none did.
	Deciding int
	// Refusal is set with the Reason Refused.
	Refusal *policy.Refusal
	// Err is what the store said, where it failed.
	Err error
}

// Reason says why a decision came out as it did.
type Reason uint8

// The reasons. Their String is a metric label.
const (
	NoRule    Reason = iota // nothing applied
	Exempt                  // the policy's exempt
	Within                  // every bucket had room
	OverLimit               // a bucket had not
	Refused                 // an identity was missing
	StoreDown               // the store did not answer: the rules' on_error
)
