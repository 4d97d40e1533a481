package xds_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/sluice-mesh/sluice/internal/xds"
	"github.com/sluice-mesh/sluice/pkg/descriptors"
	"github.com/sluice-mesh/sluice/pkg/policy"
)

const patience = 30 * time.Second

func Example() {
	c, err := xds.New(xds.Options{Server: "localhost:18000", NodeID: "ratelimit", Update: func(*policy.Set, error) {}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // it is told to end at once
	c.Run(ctx)
	// Output:
}

// A management is a management server, with what it was told.
type management struct {
	addr     string
	cache    cachev3.SnapshotCache
	version  int
	requests chan *discoveryv3.DiscoveryRequest
	server   *grpc.Server
}

func manage(t *testing.T, addr string, opts ...grpc.ServerOption) *management {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	m := &management{
		addr: l.Addr().String(), cache: cachev3.NewSnapshotCache(true, cachev3.IDHash{}, nil),
		requests: make(chan *discoveryv3.DiscoveryRequest, 100), server: grpc.NewServer(opts...),
	}
	callbacks := serverv3.CallbackFuncs{StreamRequestFunc: func(_ int64, r *discoveryv3.DiscoveryRequest) error {
		m.requests <- r
		return nil
	}}
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(m.server, serverv3.NewServer(t.Context(), m.cache, callbacks))
	served := make(chan struct{})
	go func() { defer close(served); _ = m.server.Serve(l) }()
	t.Cleanup(func() { m.server.Stop(); <-served })
	return m
}

// say makes resources the state of the world.
func (m *management) say(t *testing.T, resources ...*ratelimitv3.RateLimitConfig) {
	t.Helper()
	m.version++
	var all []types.Resource
	for _, r := range resources {
		all = append(all, r)
	}
	s, err := cachev3.NewSnapshot(fmt.Sprint(m.version), map[resource.Type][]types.Resource{resource.RateLimitConfigType: all})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.cache.SetSnapshot(t.Context(), "node", s); err != nil {
		t.Fatal(err)
	}
}

// answer returns the next request that answers a response.
func (m *management) answer(t *testing.T) *discoveryv3.DiscoveryRequest {
	t.Helper()
	for {
		select {
		case r := <-m.requests:
			if r.GetResponseNonce() != "" {
				return r
			}
		case <-time.After(patience):
			t.Fatal("no answer to a response")
		}
	}
}

// An update is what a client was told, as the rules that are in use.
type update struct {
	rules []string
	err   string
}

// follow runs a client of m and returns its updates.
func follow(t *testing.T, m *management, o xds.Options) <-chan update {
	t.Helper()
	updates := make(chan update, 100)
	o.Server, o.NodeID, o.Retry, o.Initial = m.addr, "node", 10*time.Millisecond, 10*time.Millisecond
	o.Update = func(set *policy.Set, err error) {
		u := update{err: fmt.Sprint(err)}
		for _, p := range set.Policies() {
			u.rules = append(u.rules, p.Leaves()...)
		}
		slices.Sort(u.rules)
		updates <- u
	}
	c, err := xds.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return updates
}

func next(t *testing.T, updates <-chan update) update {
	t.Helper()
	select {
	case u := <-updates:
		return u
	case <-time.After(patience):
		t.Fatal("no update")
		return update{}
	}
}

func wants(t *testing.T, u update, err string, rules ...string) {
	t.Helper()
	if diff := cmp.Diff(rules, u.rules); diff != "" || !strings.Contains(u.err, err) {
		t.Errorf("Update(%v), want an error with %q; rules (-want +got):\n%s", u.err, err, diff)
	}
}

// domain is a resource of one limit.
func domain(name string, unit int32, n uint32) *ratelimitv3.RateLimitConfig {
	return &ratelimitv3.RateLimitConfig{Name: "r-" + name, Domain: name, Descriptors: []*ratelimitv3.RateLimitDescriptor{{
		Key: "a", RateLimit: &ratelimitv3.RateLimitPolicy{Unit: ratelimitv3.RateLimitUnit(unit), RequestsPerUnit: n},
	}}}
}

func TestClientAnswers(t *testing.T) {
	t.Parallel()
	m := manage(t, "127.0.0.1:0")
	m.say(t, domain("one", 2, 5), domain("two", 3, 6))
	updates := follow(t, m, xds.Options{NodeMetadata: `{"zone":"a"}`})
	const one, two = "one.a: unit=MINUTE requests_per_unit=5, shadow_mode: false, quota_mode: false", "two.a: unit=HOUR requests_per_unit=6, shadow_mode: false, quota_mode: false"
	wants(t, next(t, updates), "<nil>", one, two)
	r := m.answer(t)
	if r.GetVersionInfo() != "1" || r.GetErrorDetail() != nil || r.GetNode().GetMetadata().GetFields()["zone"].GetStringValue() != "a" {
		t.Errorf("the answer is %v, want an ACK of 1 with the node's metadata", r)
	}
	// A resource with a fault leaves its domain as it was, and no other.
	m.say(t, domain("one", 99, 1), domain("two", 5, 7))
	const more = "two.a: unit=MONTH requests_per_unit=7, shadow_mode: false, quota_mode: false"
	wants(t, next(t, updates), "xds:r-one: descriptors[0].rate_limit", one, more)
	if r := m.answer(t); r.GetVersionInfo() != "1" || !strings.Contains(r.GetErrorDetail().GetMessage(), "r-one") {
		t.Errorf("the answer is %v, want a NACK that stays with 1 and names r-one", r)
	}
	m.say(t, domain("one", 7, 8))
	wants(t, next(t, updates), "<nil>", "one.a: unit=WEEK requests_per_unit=8, shadow_mode: false, quota_mode: false")
	for r = m.answer(t); r.GetErrorDetail() != nil; r = m.answer(t) { // what was refused is sent again
		if r.GetVersionInfo() != "1" {
			t.Errorf("the answer is %v, want a NACK that stays with 1", r)
		}
	}
	if r.GetVersionInfo() != "3" {
		t.Errorf("the answer is %v, want an ACK of 3", r)
	}
	m.say(t)
	wants(t, next(t, updates), "<nil>")
}

// A resource that cannot be used ends no domain's limits, whatever of it can be
// read, and neither do those that it makes a domain with.
func TestClientKeeps(t *testing.T) {
	t.Parallel()
	const one, two = "one.a: unit=MINUTE requests_per_unit=5, shadow_mode: false, quota_mode: false", "two.a: unit=HOUR requests_per_unit=7, shadow_mode: false, quota_mode: false"
	const old, also = "two.a: unit=HOUR requests_per_unit=6, shadow_mode: false, quota_mode: false", "one.b: unit=HOUR requests_per_unit=1, shadow_mode: false, quota_mode: false"
	beside := domain("one", 3, 1)
	beside.Name, beside.Descriptors[0].Key = "r-also", "b"
	for _, test := range map[string]struct {
		spoil         func(*ratelimitv3.RateLimitConfig)
		alone, merged []string // the rules after it; nil is not tried
	}{
		"no message":     {func(c *ratelimitv3.RateLimitConfig) { c.ProtoReflect().SetUnknown([]byte("\x0a\x05x")) }, []string{one, two}, []string{one, also, old}},
		"no domain":      {func(c *ratelimitv3.RateLimitConfig) { c.Domain = "" }, []string{one, two}, nil},
		"another domain": {func(c *ratelimitv3.RateLimitConfig) { c.Domain, c.Descriptors[0].Key = "three", "" }, []string{one, two}, nil},
		"no key":         {func(c *ratelimitv3.RateLimitConfig) { c.Descriptors[0].Key = "" }, []string{one, two}, []string{one, also, two}},
		"no metadata": {func(c *ratelimitv3.RateLimitConfig) {
			c.GetDescriptors()[0].ProtoReflect().SetUnknown([]byte("\x42\x02\x0a\x05"))
		}, []string{one, two}, []string{one, also, two}},
	} {
		after := func(merge bool, others ...*ratelimitv3.RateLimitConfig) update {
			m := manage(t, "127.0.0.1:0")
			m.say(t, append(others, domain("one", 2, 5), domain("two", 3, 6))...)
			updates := follow(t, m, xds.Options{Merge: merge})
			next(t, updates)
			bad := domain("one", 2, 9)
			test.spoil(bad)
			m.say(t, append(others, bad, domain("two", 3, 7))...)
			return next(t, updates)
		}
		wants(t, after(false), ": ", test.alone...)
		if test.merged != nil {
			wants(t, after(true, beside), ": ", test.merged...)
		}
	}
}

// All that a resource can say.
func TestClientReads(t *testing.T) {
	t.Parallel()
	m := manage(t, "127.0.0.1:0")
	quota := &ratelimitv3.RateLimitDescriptor{Key: "q", RateLimit: &ratelimitv3.RateLimitPolicy{Unit: 1, RequestsPerUnit: 1}}
	quota.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 7, protowire.VarintType), 1))
	m.say(t, &ratelimitv3.RateLimitConfig{Name: "r", Domain: "d", Descriptors: []*ratelimitv3.RateLimitDescriptor{
		{Key: "k", Value: "v", Descriptors: []*ratelimitv3.RateLimitDescriptor{{
			Key: "s", ShadowMode: true, DetailedMetric: true, RateLimit: &ratelimitv3.RateLimitPolicy{Unit: 6, RequestsPerUnit: 2, Name: "n"},
		}}},
		{Key: "u", RateLimit: &ratelimitv3.RateLimitPolicy{Unlimited: true, Replaces: []*ratelimitv3.RateLimitReplace{{Name: "n"}}}},
		{Key: "w", Value: "a*", RateLimit: &ratelimitv3.RateLimitPolicy{Unit: 4, RequestsPerUnit: 3}},
		quota,
	}})
	wants(t, next(t, follow(t, m, xds.Options{})), "<nil>",
		"d.k_v.s: unit=YEAR requests_per_unit=2, shadow_mode: true, quota_mode: false",
		"d.q: unit=SECOND requests_per_unit=1, shadow_mode: false, quota_mode: true",
		"d.u: unlimited",
		"d.w_a*: unit=DAY requests_per_unit=3, shadow_mode: false, quota_mode: false")
}

// What a rule says of itself comes back with answers, and what cannot be read
// of it is refused.
func TestClientReadsMetadata(t *testing.T) {
	t.Parallel()
	said, err := structpb.NewStruct(map[string]any{"team": "a", "level": 2.0})
	if err != nil {
		t.Fatal(err)
	}
	text, err := proto.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	sets := make(chan *policy.Set, 10)
	m := manage(t, "127.0.0.1:0")
	good, bad := domain("good", 2, 5), domain("bad", 2, 5)
	add := func(c *ratelimitv3.RateLimitConfig, text []byte) {
		c.Descriptors[0].ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 8, protowire.BytesType), text))
	}
	add(good, text)
	add(bad, []byte{0xff})
	m.say(t, good, bad)
	c, err := xds.New(xds.Options{Server: m.addr, NodeID: "node", Update: func(s *policy.Set, err error) {
		if err == nil || !strings.Contains(err.Error(), "xds:r-bad: descriptors[0]: read metadata") {
			t.Errorf("Update(%v), want an error of r-bad's metadata", err)
		}
		sets <- s
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	select {
	case s := <-sets:
		applied := s.Domain("good").ForDescriptor(descriptors.Descriptor{{Key: "a", Value: "x"}})
		if diff := cmp.Diff(said.AsMap(), applied[0].Rule.Leaf.Metadata); diff != "" || s.Domain("bad") != nil {
			t.Errorf("bad = %v, want none; metadata (-want +got):\n%s", s.Domain("bad"), diff)
		}
	case <-time.After(patience):
		t.Fatal("no update")
	}
}

func TestClientMerges(t *testing.T) {
	t.Parallel()
	a, b := domain("d", 2, 5), domain("d", 3, 6)
	a.Name, b.Name, b.Descriptors[0].Key = "r-a", "r-b", "b"
	const first = "d.a: unit=MINUTE requests_per_unit=5, shadow_mode: false, quota_mode: false"
	m := manage(t, "127.0.0.1:0")
	m.say(t, a, b)
	u := next(t, follow(t, m, xds.Options{Merge: true}))
	wants(t, u, "<nil>", first, "d.b: unit=HOUR requests_per_unit=6, shadow_mode: false, quota_mode: false")
	m = manage(t, "127.0.0.1:0")
	m.say(t, a, b)
	u = next(t, follow(t, m, xds.Options{}))
	if !strings.Contains(u.err, "want one resource a domain") || len(u.rules) != 1 {
		t.Errorf("Update(%v) of two resources of one domain, want one and an error", u)
	}
}

// A server that goes away leaves the limits, and is found again.
func TestClientComesBack(t *testing.T) {
	t.Parallel()
	m := manage(t, "127.0.0.1:0")
	m.say(t, domain("one", 2, 5))
	updates := follow(t, m, xds.Options{Jitter: 0.5})
	wants(t, next(t, updates), "<nil>", "one.a: unit=MINUTE requests_per_unit=5, shadow_mode: false, quota_mode: false")
	m.server.Stop()
	again := manage(t, m.addr)
	again.say(t, domain("one", 2, 6))
	wants(t, next(t, updates), "<nil>", "one.a: unit=MINUTE requests_per_unit=6, shadow_mode: false, quota_mode: false")
}

func TestNewWants(t *testing.T) {
	t.Parallel()
	update := func(*policy.Set, error) {}
	for want, o := range map[string]xds.Options{
		"Server is required": {NodeID: "n", Update: update}, "NodeID is required": {Server: "s", Update: update},
		"Update is required": {Server: "s", NodeID: "n"}, "NodeMetadata": {Server: "s", NodeID: "n", Update: update, NodeMetadata: "[]"},
	} {
		if _, err := xds.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New() = %v, want %s", err, want)
		}
	}
}
