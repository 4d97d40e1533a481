package limiter

import (
	"context"

	"github.com/sluice-mesh/sluice/pkg/bucket"
)

// quotasOver says that the request has quotas and that each of them denies.
func (d *Decision) quotasOver() bool {
	over := false
	for i := range d.Results {
		switch a := &d.Applied[i]; {
		case !a.Quota:
		case a.Unlimited || a.Shadow || d.Results[i].Err != nil || d.Results[i].Allowed:
			return false
		default:
			over = true
		}
	}
	return over && !d.Spare
}

// denies says that the request is denied if the rule at place i denies.
func (d *Decision) denies(i int) bool {
	return !d.Applied[i].Shadow && (!d.Applied[i].Quota || d.quotasOver())
}

// chargeQuotas makes the charges at the places that pick chooses. Those of
// quotas are made each alone, after the others; but if all quotas deny, so
// that the request is denied, nothing is charged. To know, they are looked at
// first.
func (l *Limiter) chargeQuotas(ctx context.Context, s Store, d *Decision, pick func(int) bool) error {
	if !d.mixed(pick) {
		return l.ask(ctx, s, d, pick)
	}
	if err := l.ask(ctx, looked{s}, d, pick); err != nil || d.quotasOver() {
		return err
	}
	if err := l.ask(ctx, s, d, pick); err != nil {
		return err
	}
	if d.quotasOver() && !d.othersDeny() {
		return l.giveBack(ctx, s, d, pick)
	}
	return nil
}

// mixed says that there are quotas at the places that pick chooses, and others
// to be charged beside them.
func (d *Decision) mixed(pick func(int) bool) bool {
	quotas, others := false, false
	for i := range d.Applied {
		if a := &d.Applied[i]; pick(i) && !a.Unlimited {
			quotas, others = quotas || a.Quota, others || !a.Quota
		}
	}
	return quotas && others && !d.Spare
}

// othersDeny says that a rule denies which is no quota, so that nothing was
// charged.
func (d *Decision) othersDeny() bool {
	for i := range d.Results {
		if a := &d.Applied[i]; !a.Quota && !a.Shadow && !d.Results[i].Allowed && d.Results[i].Err == nil {
			return true
		}
	}
	return false
}

// giveBack undoes the charges that are not of quotas: since they were looked
// at, others have taken what the quotas had.
func (l *Limiter) giveBack(ctx context.Context, s Store, d *Decision, pick func(int) bool) error {
	back := Decision{Applied: append(d.Applied[:0:0], d.Applied...), Results: make([]bucket.Result, len(d.Results))}
	for i := range back.Applied {
		back.Applied[i].Cost = -back.Applied[i].Cost
	}
	return l.ask(ctx, s, &back, func(i int) bool {
		return pick(i) && !d.Applied[i].Quota && d.Results[i].Err == nil && d.Results[i].Allowed
	})
}

// looked is a store that only says where there is room.
type looked struct{ Store }

// Take charges nothing.
func (l looked) Take(ctx context.Context, charges []bucket.Charge, results []bucket.Result) error {
	return Look(ctx, l.Store, charges, results)
}
