package explain

import (
	"strconv"
	"time"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/policy"
	"github.com/sluice-mesh/sluice/pkg/response"
)

// addBuckets gives the rules that were decided upon their buckets, as store
// saw them, or local in its place.
func (r *Report) addBuckets(d limiter.Decision, store, local *looking) {
	next := 0
	for i := range r.Rules {
		if r.Rules[i].Verdict != policy.Applies.String() || next >= len(d.Results) {
			continue
		}
		a, result := &d.Applied[next], &d.Results[next]
		next++
		b := bucketOf(a, result)
		seen, ok := store.balances[a.Key]
		if !ok && local != nil && result.Err == nil && !a.Unlimited {
			seen, b.Local = local.balances[a.Key], true
		}
		if !a.Unlimited {
			b.Limits, b.Lease = limitsOf(a.Limits, seen), leaseOf(a.Limits)
		}
		r.Rules[i].Bucket = b
	}
}

func bucketOf(a *policy.Applied, result *bucket.Result) *Bucket {
	b := &Bucket{Key: a.Key, Cost: a.Cost, Unlimited: a.Unlimited, Room: result.Allowed}
	if result.Err != nil {
		b.Failed = limiter.Cause(result.Err)
		return b
	}
	if !result.Allowed && result.RetryAfter != bucket.Never {
		b.Wait = seconds(result.RetryAfter)
	}
	return b
}

// limitsOf returns the limits of ls, which stand as was seen, if it was.
func limitsOf(ls *bucket.Limits, seen []balance) []Limit {
	all := make([]Limit, ls.Len())
	for i := range all {
		l := ls.At(i)
		all[i] = Limit{Name: l.Name, Rate: rate(l), Refill: l.Refill.String(), Burst: l.Burst}
		if l.Zone != nil {
			all[i].Zone = l.Zone.String()
		}
		if i < len(seen) {
			left := max(l.Burst-seen[i].spent, 0)
			if l.Tokens == 0 {
				left = 0
			}
			all[i].Left, all[i].Full = &left, seconds(seen[i].full)
		}
	}
	return all
}

// leaseOf returns what a replica takes ahead under ls, nil if it does not.
func leaseOf(ls *bucket.Limits) *Lease {
	tokens, d := ls.Lease()
	if tokens == 0 {
		return nil
	}
	return &Lease{tokens, d.Seconds()}
}

func seconds(d time.Duration) *float64 {
	s := d.Seconds()
	return &s
}

// rate writes a limit's rate as a policy file does.
func rate(l bucket.Limit) string {
	per := duration(l.Per)
	if l.Calendar != 0 {
		per = l.Calendar.String()
	}
	return strconv.FormatInt(l.Tokens, 10) + "/" + per
}

// duration writes d in the largest unit that it is a whole number of.
func duration(d time.Duration) string {
	for _, u := range []struct {
		name   string
		length time.Duration
	}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}} {
		if d >= u.length && d%u.length == 0 {
			return strconv.FormatInt(int64(d/u.length), 10) + u.name
		}
	}
	return d.String()
}

// decide sets what becomes of the request, and the answer.
func (r *Report) decide(d limiter.Decision, q asked) {
	if r.Rules == nil {
		r.Rules = []Rule{}
	}
	r.Decision = Decision{Allowed: d.Allowed, Reason: d.Reason.String(), Store: d.Cause(), Local: d.Local}
	switch {
	case d.Refusal != nil:
		r.Decision.Rule, r.Decision.Missing = d.Refusal.Rule.Name, d.Refusal.Name
	case d.Deciding >= 0:
		r.Decision.Rule = d.Applied[d.Deciding].Rule.Name
	}
	for i := range d.Applied {
		if d.ShadowDenied(i) {
			r.Decision.Shadow = append(r.Decision.Shadow, d.Applied[i].Rule.Name)
		}
	}
	note := ""
	if q.descriptors != nil {
		note = "the status and the x-ratelimit headers are as Envoy's rate limit filter is set up"
	}
	r.answer(response.For(d, q.response), note)
}

func (r *Report) answer(resp response.Response, note string) {
	r.Answer = Answer{Status: resp.Status, GRPC: resp.Code, Headers: []Header{}, Body: resp.Body, Note: note}
	for _, h := range resp.Headers {
		r.Answer.Headers = append(r.Answer.Headers, Header(h))
	}
}
