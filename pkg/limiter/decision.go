package limiter

import (
	"errors"
	"fmt"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

// A Decision is the answer to one request. It is read only.
type Decision struct {
	Allowed bool
	Reason  Reason
	// Applied and Results belong together, in the file's order. Results is
	// nil when no store was asked. A Result with an Err was not to be had: its
	// rule's on_error took its place.
	Applied []policy.Applied
	Results []bucket.Result
	// Deciding is the place of the rule that decided, -1 if none did. It is
	// never a shadow rule's. With the Reason Unlimited it is the place of the
	// first rule without limits, which has no Outcome. With the Reason
	// StoreDown and a denial it is the place of a rule whose on_error is deny,
	// and its Result means nothing.
	Deciding int
	// Failures are the Match's.
	Failures []policy.Failure
	// Refusal is set with the Reason Refused.
	Refusal *policy.Refusal
	// Spare is the Match's.
	Spare bool
	// Local says that the local store answered for at least one rule.
	Local bool
	// Err is what the store said, where it failed for the whole request or
	// for a bucket of a rule that is not shadow.
	Err error
}

// Reason says why a decision came out as it did.
type Reason uint8

// The reasons. Their String is a metric label.
const (
	NoRule        Reason = iota // nothing applied
	Exempt                      // the policy's exempt
	Within                      // every bucket that could be asked had room
	OverLimit                   // a bucket had not
	Refused                     // an identity was missing
	StoreDown                   // no store answered, and the rules' on_error allowed; or it denied
	Canceled                    // the caller went away before the store answered
	Unlimited                   // rules applied, and none of them limits this request
	UnknownDomain               // no policy is for this request
)

var reasons = [...]string{
	NoRule: "no_rule", Exempt: "exempt", Within: "within", OverLimit: "over_limit",
	Refused: "refused", StoreDown: "store_down", Canceled: "canceled", Unlimited: "unlimited", UnknownDomain: "unknown_domain",
}

// String returns the reason's label.
func (r Reason) String() string {
	if int(r) >= len(reasons) {
		return fmt.Sprintf("reason(%d)", uint8(r))
	}
	return reasons[r]
}

// Cause is Cause of Err.
func (d *Decision) Cause() string { return Cause(d.Err) }

// Cause says in a word of ours, fit for a label, why a store failed: what the
// error's Cause method says, or "other". It is "" without an error.
func Cause(err error) string {
	if err == nil {
		return ""
	}
	var c interface{ Cause() string }
	if errors.As(err, &c) {
		return c.Cause()
	}
	return "other"
}

// Rule returns the rule that decided, nil if none did.
func (d *Decision) Rule() *policy.Rule {
	switch {
	case d.Deciding >= 0:
		return d.Applied[d.Deciding].Rule
	case d.Refusal != nil:
		return d.Refusal.Rule
	default:
		return nil
	}
}

// Lacking returns the places of the rules that deny a request which is over a
// limit, in the file's order.
func (d *Decision) Lacking() []int {
	var places []int
	for i := range d.Results {
		if r := &d.Results[i]; !r.Allowed && r.Err == nil && d.denies(i) {
			places = append(places, i)
		}
	}
	return places
}

// ShadowDenied says that the rule at place i is in shadow and would have
// denied the request.
func (d *Decision) ShadowDenied(i int) bool {
	return i < len(d.Results) && d.Applied[i].Shadow && d.Results[i].Err == nil && !d.Results[i].Allowed
}

// Tightest returns the place, from from up to but not including to, of the
// rule that decides among those: denied the longest wait, allowed the fewest
// tokens left, then the longest to full, then the first. It is -1 if none of
// them has limits and a result and is not in shadow.
func (d *Decision) Tightest(from, to int) int {
	return d.tightest(from, to, func(int) bool { return true })
}

// tightest is Tightest among the places that pick chooses.
func (d *Decision) tightest(from, to int, pick func(int) bool) int {
	best := -1
	for i := from; i < min(to, len(d.Results)); i++ {
		if d.Applied[i].Shadow || d.Applied[i].Unlimited || d.Results[i].Err != nil || !pick(i) {
			continue
		}
		if best < 0 || d.Results[i].Tighter(d.Results[best]) {
			best = i
		}
	}
	return best
}

// conclude decides by the results that are there.
func (d *Decision) conclude() {
	// Of quotas that deny, while another lets the request pass, none decides.
	over := d.quotasOver()
	d.Allowed, d.Reason = true, Within
	d.Deciding = d.tightest(0, len(d.Results), func(i int) bool { return over || !d.Applied[i].Quota || d.Results[i].Allowed })
	switch {
	case d.Deciding >= 0 && !d.Results[d.Deciding].Allowed:
		d.Allowed, d.Reason = false, OverLimit
	case d.Deciding < 0 && d.Err != nil:
		d.Reason = StoreDown
	case d.Deciding < 0:
		d.unlimited()
	}
}

// unlimited sets the rule that decided where no rule has limits. Where all are
// in shadow there is none.
func (d *Decision) unlimited() {
	for i := range d.Applied {
		if a := &d.Applied[i]; a.Unlimited && !a.Shadow {
			d.Reason, d.Deciding = Unlimited, i
			return
		}
	}
}

// waive sets the results of rules without limits.
func (d *Decision) waive() {
	for i := range d.Applied {
		if d.Applied[i].Unlimited {
			d.Results[i] = bucket.Result{Allowed: true}
		}
	}
}

// fail marks the results of rules with limits as not to be had.
func (d *Decision) fail(err error) {
	for i := range d.Results {
		if !d.Applied[i].Unlimited {
			d.Results[i] = bucket.Result{Err: err}
		}
	}
}

// lacks says that the bucket at place i could not be read, and that its rule
// wants o for that.
func (d *Decision) lacks(i int, o policy.OnError) bool {
	a := &d.Applied[i]
	return d.Results[i].Err != nil && !a.Shadow && a.Rule.OnError == o
}

// unread returns the first place that lacks o, or -1.
func (d *Decision) unread(o policy.OnError) int {
	for i := range d.Results {
		if d.lacks(i, o) {
			return i
		}
	}
	return -1
}

func (d *Decision) unreadErr() error {
	for i := range d.Results {
		if d.Results[i].Err != nil && !d.Applied[i].Shadow {
			return d.Results[i].Err
		}
	}
	return nil
}

// Unavailable says that the request was denied because a store did not answer,
// for one of the rules from from up to but not including to.
func (d *Decision) Unavailable(from, to int) bool {
	for i := from; i < min(to, len(d.Results)); i++ {
		if !d.Allowed && d.Reason == StoreDown && d.lacks(i, policy.Deny503) {
			return true
		}
	}
	return false
}
