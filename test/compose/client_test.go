//go:build compose

package compose_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var client = &http.Client{
	Timeout:   30 * time.Second,
	Transport: &http.Transport{MaxIdleConnsPerHost: 64},
}

// A caller is who asks, by the word of the load balancer that these tests are.
type caller struct{ address, user string }

// An answer is what the caller got. Unasked says that Envoy let it pass without
// Sluice's word.
type answer struct {
	status  int
	header  http.Header
	body    string
	unasked bool
}

func (c caller) try(method, path string) (answer, error) {
	req, err := http.NewRequest(method, "http://"+up.envoy+path, nil)
	if err != nil {
		return answer{}, err
	}
	if c.address != "" {
		req.Header.Set("X-Forwarded-For", c.address)
	}
	if c.user != "" {
		req.Header.Set("X-User-Id", c.user)
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(body), resp.Header.Get("X-Unasked") != ""}, err
}

func (c caller) ask(t *testing.T, method, path string) answer {
	t.Helper()
	a, err := c.try(method, path)
	if err != nil {
		t.Fatalf("%s %s = %v, want an answer", method, path, err)
	}
	if a.unasked {
		t.Errorf("%s %s passed without Sluice's word", method, path)
	}
	return a
}

// A tally counts answers by their status.
type tally map[int]int

// many asks n times, some at once; from gives each request's caller.
func many(t *testing.T, n int, method, path string, from func(i int) caller) tally {
	t.Helper()
	var next, unasked atomic.Int64
	var mu sync.Mutex
	var all sync.WaitGroup
	got := tally{}
	for range 8 {
		all.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				a, err := from(int(i)).try(method, path)
				if a.unasked {
					unasked.Add(1)
				}
				mu.Lock()
				got[a.status]++ // 0 is no answer at all
				mu.Unlock()
				if err != nil {
					t.Errorf("%s %s = %v, want an answer", method, path, err)
				}
			}
		})
	}
	all.Wait()
	if unasked.Load() > 0 {
		t.Errorf("%d of %d requests for %s passed without Sluice's word", unasked.Load(), n, path)
	}
	return got
}

// query returns the values of what Prometheus says to expr, one a series.
func query(t *testing.T, expr string) []string {
	t.Helper()
	resp, err := client.Get("http://" + up.prom + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var said struct {
		Error string
		Data  struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&said); err != nil || said.Error != "" {
		t.Fatalf("query %s = %v %s, want a vector", expr, err, said.Error)
	}
	var values []string
	for _, r := range said.Data.Result {
		values = append(values, fmt.Sprint(r.Value[1]))
	}
	return values
}
