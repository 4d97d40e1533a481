package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// In a short turn a base may use less CPU than a tick, and answer nothing.
// Then there is no share of it, which JSON has a word for.
func TestJSONOfNothing(t *testing.T) {
	t.Parallel()
	var r row
	r.add(outcome{server: 3}, outcome{})          // x/0
	r.add(outcome{}, outcome{})                   // 0/0
	r.add(outcome{server: 3}, outcome{server: 2}) // a share
	var out bytes.Buffer
	if err := (found{Works: []row{r}}).report(&out, options{json: true}); err != nil {
		t.Fatalf("report = %v, want JSON", err)
	}
	var got struct {
		Works []map[string]any `json:"works"`
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("report wrote %q: %v", out.String(), err)
	}
	if diff := cmp.Diff([]any{nil, nil, 1.5}, got.Works[0]["cpu_shares"]); diff != "" {
		t.Errorf("cpu_shares differ (-want +got):\n%s", diff)
	}
}
