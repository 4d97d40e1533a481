package bench_test

import (
	"context"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/google/go-cmp/cmp"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-mesh/sluice/internal/bench"
)

// A recorder is a server that keeps what it was asked. It answers by path, or
// by the value of the first entry.
type recorder struct {
	authv3.UnimplementedAuthorizationServer
	rlsv3.UnimplementedRateLimitServiceServer
	stall  time.Duration // before the first answer
	first  sync.Once
	mu     sync.Mutex
	checks []*authv3.CheckRequest
	limits []*rlsv3.RateLimitRequest
}

func (r *recorder) Check(_ context.Context, req *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	r.first.Do(func() { time.Sleep(r.stall) })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checks = append(r.checks, req)
	switch req.GetAttributes().GetRequest().GetHttp().GetPath() {
	case "/1":
		return &authv3.CheckResponse{Status: &rpcstatus.Status{Code: int32(codes.ResourceExhausted)}}, nil
	case "/2":
		return nil, status.Error(codes.Unavailable, "away")
	default:
		return &authv3.CheckResponse{}, nil
	}
}

func (r *recorder) ShouldRateLimit(_ context.Context, req *rlsv3.RateLimitRequest) (*rlsv3.RateLimitResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limits = append(r.limits, req)
	switch req.GetDescriptors()[0].GetEntries()[0].GetValue() {
	case "1":
		return &rlsv3.RateLimitResponse{OverallCode: rlsv3.RateLimitResponse_OVER_LIMIT}, nil
	case "2":
		return nil, status.Error(codes.Unavailable, "away")
	case "3":
		return &rlsv3.RateLimitResponse{}, nil
	default:
		return &rlsv3.RateLimitResponse{OverallCode: rlsv3.RateLimitResponse_OK}, nil
	}
}

func (r *recorder) serve(t *testing.T) bench.Target {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	authv3.RegisterAuthorizationServer(s, r)
	rlsv3.RegisterRateLimitServiceServer(s, r)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return bench.Target{Addr: l.Addr().String(), Connections: 2}
}

func ran(t *testing.T, target bench.Target, r bench.Request, o bench.Options) bench.Report {
	t.Helper()
	c, err := bench.Dial(target, r)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	report, err := bench.Run(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestRunCountsAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		request bench.Request
		keys    uint64
		want    []bench.Answer
	}{
		{bench.Authz{Path: "/{key}"}, 3, []bench.Answer{bench.Denied, bench.OK, "Unavailable"}},
		{bench.RLS{Domain: "d", Descriptors: [][]bench.Entry{{{"k", "{key}"}}}}, 4, []bench.Answer{bench.Denied, bench.OK, "Unavailable", bench.Unknown}},
	} {
		var server recorder
		got := ran(t, server.serve(t), tt.request, bench.Options{Callers: 8, Requests: 400, Keys: tt.keys, Timeout: time.Minute})
		sum := int64(0)
		for _, a := range tt.want {
			if got.Answers[a] == 0 {
				t.Errorf("Run(%T) counts %v, want some of %q", tt.request, got.Answers, a)
			}
			sum += got.Answers[a]
		}
		if seen := int64(len(server.checks) + len(server.limits)); got.Requests != 400 || sum != 400 || seen != 400 {
			t.Errorf("Run(%T) counts %d requests and %d answers where the server saw %d, want 400 each", tt.request, got.Requests, sum, seen)
		}
		if got.Unanswered != got.Answers["Unavailable"] || !strings.Contains(got.FirstError, "away") {
			t.Errorf("Run(%T) = %d without an answer, first %q, want %d, the server's words", tt.request, got.Unanswered, got.FirstError, got.Answers["Unavailable"])
		}
	}
}

func TestAuthzRequest(t *testing.T) {
	t.Parallel()
	var server recorder
	ran(t, server.serve(t), bench.Authz{
		Method: "PUT", Path: "/a/{key}?{n}", Host: "h{key}{x}", Headers: []bench.Entry{{"X-User", "u{key}"}}, Peer: "10.1.0.0/16", Context: map[string]string{"domain": "d"},
	}, bench.Options{Requests: 1, Keys: 300, Seed: 1, Timeout: time.Minute})
	a := server.checks[0].GetAttributes()
	key := strings.TrimSuffix(strings.TrimPrefix(a.GetRequest().GetHttp().GetPath(), "/a/"), "?0")
	got := []string{
		a.GetRequest().GetHttp().GetMethod(), a.GetRequest().GetHttp().GetHeaders()[":path"], a.GetRequest().GetHttp().GetHost(),
		a.GetRequest().GetHttp().GetHeaders()["x-user"], a.GetContextExtensions()["domain"],
	}
	if diff := cmp.Diff([]string{"PUT", "/a/" + key + "?0", "h" + key + "{x}", "u" + key, "d"}, got); diff != "" {
		t.Errorf("what Authz sends (-want +got):\n%s", diff)
	}
	if peer := a.GetSource().GetAddress().GetSocketAddress().GetAddress(); !strings.HasPrefix(peer, "10.1.") {
		t.Errorf("the peer of Authz is %s, want one of 10.1.0.0/16", peer)
	}
}

func TestRLSRequest(t *testing.T) {
	t.Parallel()
	var server recorder
	ran(t, server.serve(t), bench.RLS{Domain: "d", Hits: 7, Descriptors: [][]bench.Entry{{{"a", "x{n}"}, {"b", "{key}"}}, {{"c", ""}}}},
		bench.Options{Requests: 1, Timeout: time.Minute})
	r := server.limits[0]
	got := []string{r.GetDomain()}
	for _, d := range r.GetDescriptors() {
		for _, e := range d.GetEntries() {
			got = append(got, e.GetKey()+"="+e.GetValue())
		}
	}
	if diff := cmp.Diff([]string{"d", "a=x0", "b=0", "c="}, got); diff != "" || r.GetHitsAddend() != 7 {
		t.Errorf("RLS sends %d hits, want 7, and (-want +got):\n%s", r.GetHitsAddend(), diff)
	}
}

// In an open loop a server that stalls makes those late too whose turn came
// meanwhile, though each of them was answered at once when it was asked.
func TestOpenLoopCountsFromWhenDue(t *testing.T) {
	t.Parallel()
	const stall, requests = 200 * time.Millisecond, 20
	for _, tt := range []struct {
		rate float64
		most bool // of the requests waited
	}{{1000, true}, {0, false}} {
		server := &recorder{stall: stall}
		got := ran(t, server.serve(t), bench.Authz{}, bench.Options{Rate: tt.rate, Requests: requests, Timeout: time.Minute})
		const first = float64((stall - requests*time.Millisecond) / time.Microsecond)
		if waited := got.Latency.Min >= first; waited != tt.most {
			t.Errorf("Run(Rate %g) on a server that stalls = %v, want all latencies over %.0f µs: %v", tt.rate, got.Latency, first, tt.most)
		}
		if (got.Late != nil) != tt.most {
			t.Errorf("Run(Rate %g) tells how late requests began: %v, want %v", tt.rate, got.Late != nil, tt.most)
		}
	}
}

func TestRateIsKept(t *testing.T) {
	t.Parallel()
	var server recorder
	got := ran(t, server.serve(t), bench.Authz{}, bench.Options{Callers: 4, Rate: 200, Duration: 500 * time.Millisecond, Timeout: time.Minute})
	if got.Requests != 100 || got.Seconds < 0.49 {
		t.Errorf("Run(200 a second for 0.5 s) makes %d requests in %.2f s, want 100 in 0.5", got.Requests, got.Seconds)
	}
}

// What is asked before the time is not counted.
func TestWarmUp(t *testing.T) {
	t.Parallel()
	var server recorder
	got := ran(t, server.serve(t), bench.Authz{}, bench.Options{Requests: 5, WarmUp: 50 * time.Millisecond, Timeout: time.Minute})
	if got.Requests != 5 || len(server.checks) <= 5 {
		t.Errorf("Run() after a warm-up counts %d requests of the server's %d, want 5 of more", got.Requests, len(server.checks))
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	asked := func(o bench.Options) map[string]int {
		var server recorder
		o.Requests, o.Timeout = 300, time.Minute
		ran(t, server.serve(t), bench.RLS{Domain: "d", Descriptors: [][]bench.Entry{{{"k", "k{key}"}}}}, o)
		counts := map[string]int{}
		for _, r := range server.limits {
			counts[r.GetDescriptors()[0].GetEntries()[0].GetValue()]++
		}
		return counts
	}
	uniform := asked(bench.Options{Keys: 3, Seed: 1})
	if len(uniform) != 3 || uniform["k0"] > 150 {
		t.Errorf("of 3 keys are asked for %v, want each about 100 times", uniform)
	}
	if diff := cmp.Diff(uniform, asked(bench.Options{Keys: 3, Seed: 1})); diff != "" {
		t.Errorf("the same seed again (-first +second):\n%s", diff)
	}
	zipf := asked(bench.Options{Keys: 1000, Zipf: 2, Seed: 1})
	if zipf["k0"] < 150 || zipf["k0"] <= zipf["k1"] || zipf["k1"] <= zipf["k5"] {
		t.Errorf("by Zipf's law are asked for %v, want k0 the most and k1 next", zipf)
	}
}

func TestCPUTime(t *testing.T) {
	t.Parallel()
	before, err := bench.CPUTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	var server recorder
	target := server.serve(t)
	for after := before; after < before+50*time.Millisecond; {
		got := ran(t, target, bench.Authz{}, bench.Options{Requests: 200, PIDs: []int{os.Getpid()}, Timeout: time.Minute})
		if after, err = bench.CPUTime(os.Getpid()); err != nil {
			t.Fatal(err)
		}
		if got.CPU[0].PID != os.Getpid() || got.CPU[0].Seconds > (after-before).Seconds() {
			t.Errorf("Run() says %+v of this process, want at most %v in all", got.CPU[0], after-before)
		}
	}
	if _, err := bench.CPUTime(0); err == nil {
		t.Errorf("CPUTime(0) = nil error, want one")
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		o    bench.Options
		want string
	}{
		{bench.Options{Callers: -1}, "found -1 callers"},
		{bench.Options{Rate: -1}, "found a rate of -1"},
		{bench.Options{Zipf: 1}, "found the Zipf exponent 1"},
		{bench.Options{WarmUp: -time.Second}, "found a warm-up of -1s"},
		{bench.Options{Duration: -time.Second}, "a duration of -1s"},
		{bench.Options{Timeout: -time.Second}, "a timeout of -1s"},
		{bench.Options{Requests: -1}, "found -1 requests"},
		{bench.Options{PIDs: []int{0}}, "process 0"},
	} {
		c, err := bench.Dial(bench.Target{Addr: "127.0.0.1:1"}, bench.Authz{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := bench.Run(t.Context(), c, tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Run(%+v) = %v, want an error with %q", tt.o, err, tt.want)
		}
	}
	for _, r := range []bench.Request{bench.Authz{Peer: "x"}, bench.RLS{Domain: "d"}, bench.RLS{Descriptors: [][]bench.Entry{{}}}} {
		if _, err := bench.Dial(bench.Target{Addr: "127.0.0.1:1"}, r); err == nil {
			t.Errorf("Dial(%+v) = nil error, want one", r)
		}
	}
	if _, err := bench.Dial(bench.Target{}, bench.Authz{}); err == nil {
		t.Errorf("Dial() without an address = nil error, want one")
	}
}

// An ending is a server that ends with its twentieth request.
type ending struct {
	recorder
	n    atomic.Int32
	stop func()
}

func (e *ending) Check(ctx context.Context, req *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	if e.n.Add(1) == 20 {
		go e.stop()
	}
	return e.recorder.Check(ctx, req)
}

// A server that ends is not asked on as fast as it refuses: twenty times take
// a second and more.
func TestServerEnds(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	authv3.RegisterAuthorizationServer(s, &ending{stop: s.Stop})
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	got := ran(t, bench.Target{Addr: l.Addr().String()}, bench.Authz{}, bench.Options{Requests: 60, Timeout: time.Minute})
	if err := <-ended; err != nil {
		t.Errorf("Serve = %v, want no error", err)
	}
	if got.Answers[bench.OK] < 19 || got.Unanswered < 20 || got.Seconds < 1 {
		t.Errorf("Run() beyond the server's end counts %v in %gs, want 19 answers and more, 20 that there were none of, and a second", got.Answers, got.Seconds)
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	var server recorder
	var text strings.Builder
	ran(t, server.serve(t), bench.Authz{}, bench.Options{Rate: 20, Duration: 1200 * time.Millisecond, Progress: &text, Timeout: time.Minute})
	if !strings.Contains(text.String(), "1 s ") || !strings.HasSuffix(text.String(), "\r") {
		t.Errorf("Run() writes the progress %q, want a line of the first second, and none left", text.String())
	}
}
