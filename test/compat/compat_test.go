// Package compat holds Sluice to what envoyproxy/ratelimit does, in cases that
// are written as files in its format, requests and the answers to them. Each
// runs through a gRPC server on both stores. What Sluice means to do otherwise
// is in the cases too, and says so.
package compat_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
)

// A table is one file of cases that share a configuration.
type table struct {
	Config   string   `yaml:"config"`
	Settings settings `yaml:"settings"`
	Cases    []struct {
		Name     string    `yaml:"name"`
		Config   string    `yaml:"config"`   // instead of the table's
		Settings *settings `yaml:"settings"` // instead of the table's
		Faults   []string  `yaml:"faults"`   // some of each, in their order
		Steps    []step    `yaml:"steps"`
	} `yaml:"cases"`
}

// settings are those of envoyproxy/ratelimit that change answers.
type settings struct {
	Merge    bool      `yaml:"merge"`
	Shadow   bool      `yaml:"shadow"`
	Quota    bool      `yaml:"quota"`
	Metadata bool      `yaml:"metadata"`
	Headers  [3]string `yaml:"headers"`
}

// A step is one request, or other things before one.
type step struct {
	After  string `yaml:"after"`  // so much time
	Config string `yaml:"config"` // is what the files say now; they may have faults

	Domain string `yaml:"domain"` // "d" unless given
	Ask    []ask  `yaml:"ask"`
	Hits   uint32 `yaml:"hits"`
	Times  int    `yaml:"times"` // of the same; the last answer counts

	Over     bool           `yaml:"over"`
	Want     []string       `yaml:"want"`
	Headers  []string       `yaml:"headers"`
	Metadata map[string]any `yaml:"metadata"`
	Error    string         `yaml:"error"`
}

// Each case of each table is run on each store.
func TestCompat(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("Glob(testdata) = %v, %v, want tables", files, err)
	}
	stores := openStores(t)
	cases := 0
	for _, file := range files {
		tab := read(t, file)
		cases += len(tab.Cases)
		for i := range tab.Cases {
			for _, s := range stores {
				name := strings.TrimSuffix(filepath.Base(file), ".yaml") + "/" + tab.Cases[i].Name + "/" + s.name
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					tab.run(t, i, s)
				})
			}
		}
	}
	const least = 100
	if cases < least {
		t.Errorf("%d cases, want at least %d", cases, least)
	}
}

func read(t *testing.T, file string) table {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var tab table
	if err := yaml.Load(data, &tab, yaml.WithKnownFields()); err != nil {
		t.Fatalf("read %s: %v", file, err)
	}
	return tab
}

// prefixes numbers the cases, for keys that no other has.
var prefixes atomic.Int64

// run runs case i on a store of its own.
func (tab table) run(t *testing.T, i int, s store) {
	t.Helper()
	c := tab.Cases[i]
	if c.Config == "" {
		c.Config = tab.Config
	}
	set := tab.Settings
	if c.Settings != nil {
		set = *c.Settings
	}
	y := newSystem(t, s, set, strconv.Itoa(int(prefixes.Add(1)))+":")
	y.load(t, c.Config)
	if diff := faultsDiffer(c.Faults, y.faults); diff != "" {
		t.Errorf("the configuration: %s", diff)
	}
	for n, st := range c.Steps {
		y.step(t, n, st)
	}
}

// faultsDiffer says how got is not wants, of each of which it has a part.
// Warnings are looked at where one is wanted.
func faultsDiffer(wants, got []string) string {
	isWarning := func(s string) bool { return strings.Contains(s, "warning:") }
	if !slices.ContainsFunc(wants, isWarning) {
		got = slices.DeleteFunc(slices.Clone(got), isWarning)
	}
	if len(wants) != len(got) {
		return fmt.Sprintf("%d faults, want %d:\n%s", len(got), len(wants), strings.Join(got, "\n"))
	}
	for i, want := range wants {
		if !strings.Contains(got[i], want) {
			return fmt.Sprintf("the fault %q, want %q", got[i], want)
		}
	}
	return ""
}

func (y *system) step(t *testing.T, n int, st step) {
	t.Helper()
	if st.After != "" {
		d, err := time.ParseDuration(st.After)
		if err != nil {
			t.Fatal(err)
		}
		y.clock.move(d)
	}
	if st.Config != "" {
		y.load(t, st.Config)
	}
	if st.Ask == nil && st.Error == "" {
		return
	}
	req := st.request(t)
	var resp *rlsv3.RateLimitResponse
	var err error
	for range max(st.Times, 1) {
		resp, err = y.client.ShouldRateLimit(t.Context(), req)
	}
	st.compare(t, n, resp, err)
}

func (st step) compare(t *testing.T, n int, resp *rlsv3.RateLimitResponse, err error) {
	t.Helper()
	if got := errorText(err); got != st.Error {
		t.Fatalf("step %d: ShouldRateLimit(%v) = error %q, want %q", n, st.Ask, got, st.Error)
	}
	if err != nil {
		return
	}
	if got := resp.GetOverallCode() == rlsv3.RateLimitResponse_OVER_LIMIT; got != st.Over {
		t.Errorf("step %d: ShouldRateLimit(%v) = %v, want over %v", n, st.Ask, resp.GetOverallCode(), st.Over)
	}
	var statuses []string
	for _, s := range resp.GetStatuses() {
		statuses = append(statuses, statusText(s))
	}
	if diff := cmp.Diff(st.Want, statuses); diff != "" {
		t.Errorf("step %d: ShouldRateLimit(%v) statuses (-want +got):\n%s", n, st.Ask, diff)
	}
	var headers []string
	for _, h := range resp.GetResponseHeadersToAdd() {
		headers = append(headers, h.GetKey()+": "+h.GetValue())
	}
	if diff := cmp.Diff(st.Headers, headers); diff != "" {
		t.Errorf("step %d: ShouldRateLimit(%v) headers (-want +got):\n%s", n, st.Ask, diff)
	}
	if diff := cmp.Diff(plain(t, st.Metadata), metadataOf(t, resp)); diff != "" {
		t.Errorf("step %d: ShouldRateLimit(%v) metadata (-want +got):\n%s", n, st.Ask, diff)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	s := status.Convert(err)
	return s.Code().String() + ": " + s.Message()
}

// statusText is a status in few words: OK 5/MINUTE name=a left=4 reset=20.
func statusText(s *rlsv3.RateLimitResponse_DescriptorStatus) string {
	text := s.GetCode().String()
	if l := s.GetCurrentLimit(); l != nil {
		times := ""
		if m := l.GetUnitMultiplier(); m != nil {
			times = fmt.Sprintf("%dx", m.GetValue())
		}
		text += fmt.Sprintf(" %d/%s%s", l.GetRequestsPerUnit(), times, l.GetUnit())
		if l.GetName() != "" {
			text += " name=" + l.GetName()
		}
	}
	if s.GetCurrentLimit() != nil || s.GetLimitRemaining() != 0 {
		text += fmt.Sprintf(" left=%d", s.GetLimitRemaining())
	}
	if d := s.GetDurationUntilReset(); d != nil {
		text += fmt.Sprintf(" reset=%d", d.GetSeconds())
	}
	return text
}

func metadataOf(t *testing.T, resp *rlsv3.RateLimitResponse) any {
	t.Helper()
	if resp.GetDynamicMetadata() == nil {
		return nil
	}
	data, err := protojson.Marshal(resp.GetDynamicMetadata())
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// plain is m as it comes back from JSON.
func plain(t *testing.T, m map[string]any) any {
	t.Helper()
	if m == nil {
		return nil
	}
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
