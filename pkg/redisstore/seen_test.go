package redisstore_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-mesh/sluice/pkg/bucket"
	"github.com/sluice-mesh/sluice/pkg/redisstore"
	"github.com/sluice-mesh/sluice/test/servers"
)

// TestSeen has several requests charge a bucket in one call: what it is then is
// told once, and so for each bucket.
func TestSeen(t *testing.T) {
	t.Parallel()
	for _, kind := range servers.Kinds() {
		server := servers.Start(t, kind, servers.Options{Socket: true})
		got := map[string][]int64{}
		a, b := tagged(t, "a"), tagged(t, "b")
		store := open(t, redisstore.Options{URL: server.URL(), Deadline: patience, Seen: func(keys []string, seen []bucket.Bucket) {
			for i, key := range keys {
				_, result := seen[i].Take(a.Limits, time.Now(), 0)
				got[key] = append(got[key], result.Remaining)
			}
		}})
		charges := [][]bucket.Charge{{a}, {b, a}, {a}}
		results := [][]bucket.Result{make([]bucket.Result, 1), make([]bucket.Result, 2), make([]bucket.Result, 1)}
		if err := store.TakeEach(t.Context(), charges, results); err != nil {
			t.Fatalf("%s: TakeEach = %v, want no error", kind.Name, err)
		}
		if diff := cmp.Diff(map[string][]int64{"a": {7}, "b": {9}}, got); diff != "" {
			t.Errorf("%s: Seen was told of so many left (-want +got):\n%s", kind.Name, diff)
		}
	}
}
