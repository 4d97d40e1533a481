package compat_test

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"go.yaml.in/yaml/v4"
	"golang.org/x/tools/txtar"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/sluice-mesh/sluice/internal/server"
	"github.com/sluice-mesh/sluice/pkg/limiter"
	"github.com/sluice-mesh/sluice/pkg/memstore"
	"github.com/sluice-mesh/sluice/pkg/policy"
	"github.com/sluice-mesh/sluice/pkg/policyfile"
	"github.com/sluice-mesh/sluice/pkg/redisstore"
	"github.com/sluice-mesh/sluice/pkg/rls"
	"github.com/sluice-mesh/sluice/test/servers"
)

// A store makes stores with a clock of their own.
type store struct {
	name string
	open func(t *testing.T, c *clock, prefix string) limiter.Store
}

func openStores(t *testing.T) []store {
	t.Helper()
	redis := servers.Start(t, servers.Redis, servers.Options{})
	return []store{
		{"memory", func(t *testing.T, c *clock, _ string) limiter.Store {
			return must(memstore.New(memstore.Options{Now: c.now}))(t)
		}},
		{"redis", func(t *testing.T, c *clock, prefix string) limiter.Store {
			s := must(redisstore.New(redisstore.Options{URL: redis.URL(), KeyPrefix: prefix, Now: c.now, Deadline: 10 * time.Second, PoolSize: 2}))(t)
			t.Cleanup(func() { s.Close() })
			return s
		}},
	}
}

// must returns what makes v of a test that fails with err.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// A clock stands until it is moved. It begins 20 s before a minute ends, 800 s
// before an hour, 80000 s before a day, 339200 s before a week, 512000 s before
// 30 days and 9152000 s before 365 days.
type clock struct{ ns atomic.Int64 }

func newClock() *clock {
	c := new(clock)
	c.ns.Store(1_000_000_000 * int64(time.Second))
	return c
}

func (c *clock) now() time.Time       { return time.Unix(0, c.ns.Load()) }
func (c *clock) move(d time.Duration) { c.ns.Add(int64(d)) }

// A system is a gRPC server of a policy that can be changed.
type system struct {
	clock  *clock
	set    atomic.Pointer[policy.Set]
	merge  bool
	faults []string
	client rlsv3.RateLimitServiceClient
}

func newSystem(t *testing.T, s store, set settings, prefix string) *system {
	t.Helper()
	y := &system{clock: newClock(), merge: set.Merge}
	l := must(limiter.New(limiter.Options{Store: s.open(t, y.clock, prefix)}))(t)
	m := &rls.Manner{Shadow: set.Shadow, Quota: set.Quota, Metadata: set.Metadata}
	if set.Headers[0] != "" {
		m.Headers = &rls.HeaderNames{Limit: set.Headers[0], Remaining: set.Headers[1], Reset: set.Headers[2]}
	}
	door := must(rls.New(rls.Options{Policies: y.set.Load, Limiter: l, Manner: m, Now: y.clock.now}))(t)
	y.client = rlsv3.NewRateLimitServiceClient(serve(t, door))
	return y
}

// serve serves s and returns a connection to it.
func serve(t *testing.T, s *rls.Server) *grpc.ClientConn {
	t.Helper()
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() {
		if err := server.New(server.Options{Services: []server.Service{server.RateLimit(s)}}).Run(ctx, l); err != nil {
			t.Errorf("Run() = %v, want no error", err)
		}
	})
	conn := must(grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials())))(t)
	t.Cleanup(func() { conn.Close(); cancel(); wait.Wait() })
	return conn
}

// load makes the files of text, an archive or one file, the policy.
func (y *system) load(t *testing.T, text string) {
	t.Helper()
	files := fstest.MapFS{}
	ar := txtar.Parse([]byte(text))
	if len(ar.Files) == 0 {
		files["config.yaml"] = &fstest.MapFile{Data: []byte(text)}
	}
	for _, f := range ar.Files {
		files[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	set, faults := policyfile.LoadKeeping(policyfile.Options{
		FS: files, Paths: []string{"."}, Merge: y.merge, Ratelimit: &policyfile.Ratelimit{SkipDotfiles: true},
	}, y.set.Load())
	y.set.Store(set)
	y.faults = nil
	for _, f := range faults {
		y.faults = append(y.faults, f.String())
	}
}

// An ask is a descriptor: a=1|b=2, or with more to it, d: a=1, hits: 0.
type ask struct {
	Descriptor string  `yaml:"d"`
	Hits       *uint64 `yaml:"hits"`
	Negative   bool    `yaml:"negative"`
	Limit      string  `yaml:"limit"` // 5/MINUTE
}

// UnmarshalYAML reads both forms.
func (a *ask) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		a.Descriptor = n.Value
		return nil
	}
	type fields ask
	return n.Decode((*fields)(a))
}

func (a ask) String() string { return a.Descriptor }

func (st step) request(t *testing.T) *rlsv3.RateLimitRequest {
	t.Helper()
	req := &rlsv3.RateLimitRequest{Domain: "d", HitsAddend: st.Hits}
	switch st.Domain {
	case "":
	case "none":
		req.Domain = ""
	default:
		req.Domain = st.Domain
	}
	for _, a := range st.Ask {
		d := &commonv3.RateLimitDescriptor{IsNegativeHits: a.Negative}
		for entry := range strings.SplitSeq(a.Descriptor, "|") {
			if key, value, _ := strings.Cut(entry, "="); entry != "" {
				d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{Key: key, Value: value})
			}
		}
		if a.Hits != nil {
			d.HitsAddend = wrapperspb.UInt64(*a.Hits)
		}
		if a.Limit != "" {
			d.Limit = override(t, a.Limit)
		}
		req.Descriptors = append(req.Descriptors, d)
	}
	return req
}

func override(t *testing.T, text string) *commonv3.RateLimitDescriptor_RateLimitOverride {
	t.Helper()
	digits, unit, _ := strings.Cut(text, "/")
	n := must(strconv.ParseUint(digits, 10, 32))(t)
	u, ok := typev3.RateLimitUnit_value[unit]
	if !ok {
		u = 99
	}
	return &commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: uint32(n), Unit: typev3.RateLimitUnit(u)}
}
