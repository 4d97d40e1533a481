package response_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/policy"
	"github.com/sluice-mesh/sluice/pkg/response"
)

func Example() {
	limits, _ := bucket.NewLimits(bucket.Limit{Tokens: 5, Per: 10 * time.Second})
	d := limiter.Decision{
		Reason:  limiter.OverLimit,
		Applied: []policy.Applied{{Rule: &policy.Rule{Name: "hello"}, Charge: bucket.Charge{Limits: limits, Cost: 1}}},
		Results: []bucket.Result{{RetryAfter: 1500 * time.Millisecond}},
	}
	r := response.For(d, response.Request{Path: "/hello", Method: "GET"})
	fmt.Println(r.Status)
	for _, h := range r.Headers {
		fmt.Println(h.Name+":", h.Value)
	}
	// Output:
	// 429
	// X-RateLimit-Limit: 5
	// X-RateLimit-Remaining: 0
	// X-RateLimit-Reset: 2
	// Retry-After: 2
	// x-envoy-ratelimited: true
}

// decision is one of a single rule, 5 tokens in 10 s with a burst of 20.
func decision(t testing.TB, rule policy.Rule, r bucket.Result) limiter.Decision {
	t.Helper()
	limits, err := bucket.NewLimits(bucket.Limit{Tokens: 5, Per: 10 * time.Second, Burst: 20})
	if err != nil {
		t.Fatalf("NewLimits() = %v, want no error", err)
	}
	d := limiter.Decision{
		Allowed: r.Allowed, Reason: limiter.Within,
		Applied: []policy.Applied{{Rule: &rule, Charge: bucket.Charge{Limits: limits, Cost: 1}}},
		Results: []bucket.Result{r},
	}
	if !r.Allowed {
		d.Reason = limiter.OverLimit
	}
	return d
}

func lines(hs []response.Header) string {
	var b strings.Builder
	for _, h := range hs {
		fmt.Fprintf(&b, "%s: %s\n", h.Name, h.Value)
	}
	return b.String()
}

var (
	room     = bucket.Result{Allowed: true, Remaining: 7, FullIn: 25001 * time.Millisecond}
	lacking  = bucket.Result{RetryAfter: 100 * time.Millisecond, FullIn: time.Hour}
	hopeless = bucket.Result{Remaining: 3, RetryAfter: bucket.Never, FullIn: time.Hour}
)

func TestForHeaders(t *testing.T) {
	t.Parallel()
	const (
		x        = "X-RateLimit-Limit: 20\nX-RateLimit-Remaining: 7\nX-RateLimit-Reset: 26\n"
		xDenied  = "X-RateLimit-Limit: 20\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1\n"
		i        = "RateLimit-Policy: \"api\";q=20;w=40\nRateLimit: \"api\";r=7;t=26\n"
		iDenied  = "RateLimit-Policy: \"api\";q=20;w=40\nRateLimit: \"api\";r=0;t=1\n"
		limited  = "x-envoy-ratelimited: true\n"
		retry    = "Retry-After: 1\n"
		xForever = "X-RateLimit-Limit: 20\nX-RateLimit-Remaining: 3\n"
		iForever = "RateLimit-Policy: \"api\";q=20;w=40\nRateLimit: \"api\";r=3\n"
	)
	own := policy.Headers{
		Limit: "A-Limit", Remaining: "X-Bluetape4k-Remaining-Token", Reset: "A-Reset", RetryAfter: "A-Retry", Policy: "A-Policy",
	}
	both := own
	both.Style = policy.Both
	for name, tc := range map[string]struct {
		headers *policy.Headers
		result  bucket.Result
		grpc    bool
		want    string
	}{
		"B080 allowed":            {&policy.Headers{}, room, false, x},
		"no headers said":         {nil, room, false, x},
		"B080 denied":             {&policy.Headers{}, lacking, false, xDenied + retry + limited},
		"B078 B083 denied gRPC":   {&policy.Headers{}, lacking, true, xDenied + retry + limited + "grpc-status: 8\n"},
		"allowed gRPC":            {&policy.Headers{}, room, true, x},
		"no wait helps":           {&policy.Headers{}, hopeless, false, xForever + limited},
		"ietf allowed":            {&policy.Headers{Style: policy.IETF}, room, false, i},
		"ietf denied":             {&policy.Headers{Style: policy.IETF}, lacking, false, iDenied + retry + limited},
		"ietf, no wait helps":     {&policy.Headers{Style: policy.IETF}, hopeless, false, iForever + limited},
		"both allowed":            {&policy.Headers{Style: policy.Both}, room, false, x + i},
		"both denied":             {&policy.Headers{Style: policy.Both}, lacking, false, xDenied + iDenied + retry + limited},
		"none allowed":            {&policy.Headers{Style: policy.None}, room, false, ""},
		"none denied":             {&policy.Headers{Style: policy.None}, lacking, false, retry + limited},
		"names of its own":        {&own, room, false, "A-Limit: 20\nX-Bluetape4k-Remaining-Token: 7\nA-Reset: 26\n"},
		"names of its own, ietf":  {&both, lacking, false, "A-Limit: 20\nX-Bluetape4k-Remaining-Token: 0\nA-Reset: 1\nA-Policy: \"api\";q=20;w=40\nRateLimit: \"api\";r=0;t=1\nA-Retry: 1\n" + limited},
		"never below zero":        {&policy.Headers{}, bucket.Result{Allowed: true, Remaining: -1}, false, "X-RateLimit-Limit: 20\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 0\n"},
		"B077 the wait, not more": {&policy.Headers{}, bucket.Result{Remaining: 1, RetryAfter: 3500 * time.Millisecond, FullIn: time.Minute}, false, "X-RateLimit-Limit: 20\nX-RateLimit-Remaining: 1\nX-RateLimit-Reset: 4\nRetry-After: 4\n" + limited},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := decision(t, policy.Rule{Name: "api", Headers: tc.headers}, tc.result)
			got := response.For(d, response.Request{GRPC: tc.grpc})
			if diff := cmp.Diff(tc.want, lines(got.Headers)); diff != "" {
				t.Errorf("For(%s) headers (-want +got):\n%s", name, diff)
			}
		})
	}
}

// A rule of rate 0 has no window, no wait and no reset.
func TestForRateZero(t *testing.T) {
	t.Parallel()
	limits, err := bucket.NewLimits(bucket.Limit{Per: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	_, result := bucket.Bucket{}.Take(limits, time.Unix(1_000_000, 0), 1)
	d := decision(t, policy.Rule{Name: "shut", Headers: &policy.Headers{Style: policy.Both}}, result)
	d.Applied[0].Limits = limits
	want := "X-RateLimit-Limit: 0\nX-RateLimit-Remaining: 0\nRateLimit-Policy: \"shut\";q=0\nRateLimit: \"shut\";r=0\nx-envoy-ratelimited: true\n"
	if diff := cmp.Diff(want, lines(response.For(d, response.Request{}).Headers)); diff != "" {
		t.Errorf("For(rate 0) headers (-want +got):\n%s", diff)
	}
}

func TestForDenials(t *testing.T) {
	t.Parallel()
	const limited = "x-envoy-ratelimited: true\n"
	rule := &policy.Rule{Name: "api"}
	refused := func(status int) limiter.Decision {
		return limiter.Decision{Reason: limiter.Refused, Deciding: -1, Refusal: &policy.Refusal{Rule: rule, Name: "user", Status: status}}
	}
	down := limiter.Decision{
		Reason: limiter.StoreDown, Err: errors.New("dial 10.0.0.1:6379: refused"),
		Applied: []policy.Applied{{Rule: rule}}, Results: []bucket.Result{{Err: errors.New("secret")}},
	}
	teapot := decision(t, policy.Rule{Name: "api", Headers: &policy.Headers{Style: policy.None}, Deny: policy.Deny{Status: 418}}, hopeless)
	for name, tc := range map[string]struct {
		d            limiter.Decision
		grpc         bool
		status, code int
		headers      string
	}{
		"a status of its own": {teapot, false, 418, 8, limited},
		"B046 store down":     {down, false, 503, 14, limited},
		"store down, gRPC":    {down, true, 503, 14, limited + "grpc-status: 14\n"},
		"canceled":            {limiter.Decision{Reason: limiter.Canceled, Deciding: -1}, false, 503, 14, limited},
		"refused 401":         {refused(401), false, 401, 16, limited},
		"refused 401, gRPC":   {refused(401), true, 401, 16, limited + "grpc-status: 16\n"},
		"refused 403":         {refused(403), true, 403, 7, limited + "grpc-status: 7\n"},
		"refused 400":         {refused(400), true, 400, 3, limited + "grpc-status: 3\n"},
		"refused 404":         {refused(404), true, 404, 12, limited + "grpc-status: 12\n"},
		"refused 429":         {refused(429), true, 429, 8, limited + "grpc-status: 8\n"},
		"refused 451":         {refused(451), true, 451, 2, limited + "grpc-status: 2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := response.For(tc.d, response.Request{GRPC: tc.grpc})
			if got.Allowed || got.Status != tc.status || got.Code != tc.code || got.Body != "" {
				t.Errorf("For(%s) = %+v, want status %d, code %d, no body", name, got, tc.status, tc.code)
			}
			if diff := cmp.Diff(tc.headers, lines(got.Headers)); diff != "" {
				t.Errorf("For(%s) headers (-want +got):\n%s", name, diff)
			}
		})
	}
}

func TestForMetadata(t *testing.T) {
	t.Parallel()
	rule := policy.Rule{Name: "b"}
	for name, tc := range map[string]struct {
		d    limiter.Decision
		want string
	}{
		"B108 denied":     {decision(t, rule, lacking), "rule: b\nallowed: false\nremaining: 0\nlimit: 20\nretry_after: 1\n"},
		"no wait helps":   {decision(t, rule, hopeless), "rule: b\nallowed: false\nremaining: 3\nlimit: 20\n"},
		"allowed":         {decision(t, rule, room), "rule: b\nallowed: true\nremaining: 7\nlimit: 20\n"},
		"nothing applies": {limiter.Decision{Allowed: true, Deciding: -1}, "allowed: true\n"},
		"unlimited": {
			limiter.Decision{Allowed: true, Reason: limiter.Unlimited, Applied: []policy.Applied{{Rule: &rule, Unlimited: true}}, Results: []bucket.Result{{Allowed: true}}},
			"rule: b\nallowed: true\n",
		},
		"refused": {
			limiter.Decision{Reason: limiter.Refused, Deciding: -1, Refusal: &policy.Refusal{Rule: &rule, Status: 400}},
			"rule: b\nallowed: false\n",
		},
		"refused by no rule": {
			limiter.Decision{Reason: limiter.Refused, Deciding: -1, Refusal: &policy.Refusal{Status: 400}}, "allowed: false\n",
		},
		"store down": {
			limiter.Decision{Reason: limiter.StoreDown, Applied: []policy.Applied{{Rule: &rule}}, Results: []bucket.Result{{}}},
			"rule: b\nallowed: false\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := response.For(tc.d, response.Request{})
			if diff := cmp.Diff(tc.want, lines(got.Metadata)); diff != "" {
				t.Errorf("For(%s) metadata (-want +got):\n%s", name, diff)
			}
		})
	}
}

func TestForNothingToSay(t *testing.T) {
	t.Parallel()
	for _, reason := range []limiter.Reason{limiter.NoRule, limiter.Exempt, limiter.StoreDown, limiter.UnknownDomain} {
		got := response.For(limiter.Decision{Allowed: true, Reason: reason, Deciding: -1}, response.Request{GRPC: true})
		if !got.Allowed || got.Status != 200 || got.Code != 0 || len(got.Headers) != 0 || got.Body != "" {
			t.Errorf("For(%v) = %+v, want 200 and no headers", reason, got)
		}
	}
}
