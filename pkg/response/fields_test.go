package response_test

import (
	"math"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/policy"
	"github.com/sluice-mesh/sluice/pkg/response"
)

// item reads the header name of hs as a parser of structured fields does: a
// list of one string.
func item(t *testing.T, hs []response.Header, name string) httpsfv.Item {
	t.Helper()
	var values []string
	for _, h := range hs {
		if h.Name == name {
			values = append(values, h.Value)
		}
	}
	list, err := httpsfv.UnmarshalList(values)
	if err != nil || len(list) != 1 {
		t.Fatalf("UnmarshalList(%s: %q) = %v, %v, want one item", name, values, list, err)
	}
	return list[0].(httpsfv.Item)
}

func wantItem(t *testing.T, got httpsfv.Item, value string, params map[string]int64) {
	t.Helper()
	if got.Value != value || len(got.Params.Names()) != len(params) {
		t.Errorf("item = %v with %v, want %q with %v", got.Value, got.Params.Names(), value, params)
	}
	for name, want := range params {
		if p, ok := got.Params.Get(name); !ok || p != want {
			t.Errorf("parameter %s of %q = %v, want %d", name, value, p, want)
		}
	}
}

func TestForStructuredFields(t *testing.T) {
	t.Parallel()
	type params = map[string]int64
	for name, tc := range map[string]struct {
		rule          string
		limit         bucket.Limit
		result        bucket.Result
		item          string
		policy, state params
	}{
		"plain": {
			"burst",
			bucket.Limit{Tokens: 100, Per: time.Minute},
			bucket.Result{Allowed: true, Remaining: 50, FullIn: 30 * time.Second},
			"burst",
			params{"q": 100, "w": 60},
			params{"r": 50, "t": 30},
		},
		"a limit with a name": {
			"api", bucket.Limit{Name: "daily", Tokens: 10, Per: time.Hour}, lacking, "api/daily", params{"q": 10, "w": 3600}, params{"r": 0, "t": 1},
		},
		"a name in need of care": {
			"a\"b\\c\r\né", bucket.Limit{Tokens: 1, Per: time.Second}, room, `a"b\c???`, params{"q": 1, "w": 1}, params{"r": 7, "t": 26},
		},
		"more than such a field can say": {
			"big",
			bucket.Limit{Tokens: 1<<53 - 1, Per: time.Millisecond},
			bucket.Result{Allowed: true, Remaining: 1<<53 - 1},
			"big",
			params{"q": 999_999_999_999_999, "w": 1},
			params{"r": 999_999_999_999_999, "t": 0},
		},
		"the longest wait": {
			"long",
			bucket.Limit{Tokens: 1, Per: 24 * time.Hour},
			bucket.Result{RetryAfter: math.MaxInt64 - 1},
			"long",
			params{"q": 1, "w": 86400},
			params{"r": 0, "t": 9_223_372_037},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits, err := bucket.NewLimits(tc.limit)
			if err != nil {
				t.Fatal(err)
			}
			d := decision(t, policy.Rule{Name: tc.rule, Headers: &policy.Headers{Style: policy.IETF}}, tc.result)
			d.Applied[0].Limits = limits
			hs := response.For(d, response.Request{}).Headers
			wantItem(t, item(t, hs, "RateLimit-Policy"), tc.item, tc.policy)
			wantItem(t, item(t, hs, "RateLimit"), tc.item, tc.state)
		})
	}
}
