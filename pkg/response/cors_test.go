package response_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/policy"
	"github.com/sluice-mesh/sluice/pkg/response"
)

const app = "https://app.example"

// told are the headers after those of the rate limit.
func told(t *testing.T, h policy.Headers, r bucket.Result, req response.Request) string {
	t.Helper()
	h.Style = policy.None
	got := response.For(decision(t, policy.Rule{Name: "api", Headers: &h}, r), req)
	return lines(got.Headers)
}

func TestForCORS(t *testing.T) {
	t.Parallel()
	listed := policy.Headers{CORS: []string{"http://localhost:3000", app}, Rule: "X-Rule"}
	const (
		denied  = "Retry-After: 1\nx-envoy-ratelimited: true\nX-Rule: api\n"
		exposed = "Access-Control-Expose-Headers: Retry-After, x-envoy-ratelimited, X-Rule\n"
		origin  = "Access-Control-Allow-Origin: https://app.example\nAccess-Control-Allow-Credentials: true\n"
	)
	for name, tc := range map[string]struct {
		headers policy.Headers
		result  bucket.Result
		origin  string
		want    string
	}{
		"B026 an origin that is listed": {listed, lacking, app, denied + exposed + origin + "Vary: Origin\n"},
		"B026 one that is not":          {listed, lacking, "https://evil.example", denied + exposed + "Vary: Origin\n"},
		"no origin":                     {listed, lacking, "", denied + exposed + "Vary: Origin\n"},
		"an origin with more":           {listed, lacking, app + "\r\nx: 1", denied + exposed + "Vary: Origin\n"},
		"every origin":                  {policy.Headers{CORS: []string{"*"}}, lacking, "https://any.example", "Retry-After: 1\nx-envoy-ratelimited: true\nAccess-Control-Expose-Headers: Retry-After, x-envoy-ratelimited\nAccess-Control-Allow-Origin: *\n"},
		"allowed":                       {listed, room, app, "X-Rule: api\nAccess-Control-Expose-Headers: X-Rule\n"},
		"allowed, nothing to expose":    {policy.Headers{CORS: []string{app}}, room, app, ""},
		"nobody asked for it":           {policy.Headers{}, lacking, app, "Retry-After: 1\nx-envoy-ratelimited: true\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, told(t, tc.headers, tc.result, response.Request{Origin: tc.origin})); diff != "" {
				t.Errorf("For(origin %q) headers (-want +got):\n%s", tc.origin, diff)
			}
		})
	}
}

// What denies without a bucket is shown to scripts like what denies by one.
func TestForCORSWithoutBucket(t *testing.T) {
	t.Parallel()
	rule := &policy.Rule{Name: "api", Headers: &policy.Headers{CORS: []string{app}, Rule: "X-Rule"}}
	for name, tc := range map[string]struct {
		d    limiter.Decision
		want string
	}{
		"refused": {
			limiter.Decision{Reason: limiter.Refused, Deciding: -1, Refusal: &policy.Refusal{Rule: rule, Status: 401}},
			"x-envoy-ratelimited: true\nX-Rule: api\nAccess-Control-Expose-Headers: x-envoy-ratelimited, X-Rule\n",
		},
		"store down": {
			limiter.Decision{Reason: limiter.StoreDown, Applied: []policy.Applied{{Rule: rule}}, Results: []bucket.Result{{}}},
			"x-envoy-ratelimited: true\nX-Rule: api\nAccess-Control-Expose-Headers: x-envoy-ratelimited, X-Rule\n",
		},
	} {
		want := tc.want + "Access-Control-Allow-Origin: https://app.example\nAccess-Control-Allow-Credentials: true\nVary: Origin\n"
		if diff := cmp.Diff(want, lines(response.For(tc.d, response.Request{Origin: app}).Headers)); diff != "" {
			t.Errorf("For(%s) headers (-want +got):\n%s", name, diff)
		}
	}
}
