package chaos_test

import (
	"context"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	rlcommonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/sluice-mesh/sluice/test/servers"
	"github.com/sluice-mesh/sluice/test/stack"
)

// Nothing of the well comes back meanwhile, and a replica leases a bucket's 50th
// at a time; the brook brings 300 a second.
const (
	well, share, leaseTime = 5000, 5000 / 50, 200 * time.Millisecond
	brook, perSecond       = 100, 300

	leasePolicy = `domain: edge
rules:
  - {name: well, descriptor: [from=well], limits: [{rate: 1/1d, burst: 5000}], lease: {share: 2%, for: 200ms}, on_error: deny}
  - {name: brook, descriptor: [from=brook], limits: [{rate: 300/1s, burst: 100}], lease: {share: 5%, for: 200ms}, on_error: deny}
`
)

// TestLeases has four replicas spend of two buckets ahead, and kills one of them
// under load. Never more is admitted than the limits allow, and of the well no
// fewer than all but what the one that died held, and what its callers were not
// answered.
func TestLeases(t *testing.T) {
	t.Parallel()
	for _, kind := range servers.Kinds() {
		t.Run("one "+kind.Name, func(t *testing.T) {
			t.Parallel()
			leases(t, servers.Start(t, kind, servers.Options{}).URL())
		})
		t.Run("a Cluster of "+kind.Name, func(t *testing.T) {
			t.Parallel()
			leases(t, servers.Cluster(t, kind, 3, servers.Options{}).URL())
		})
	}
}

func leases(t *testing.T, url string) {
	args := []string{"--policy", policyOf(t, leasePolicy), "--redis-url", url, "--store-deadline", deadline.String()}
	doomed := startDoomed(t, args...)
	replicas := []*stack.Extauthz{doomed, serve(t, args...), serve(t, args...), serve(t, args...)}
	d := startDrinking(t, replicas)
	eventually(t, "a third of the well is drunk", func() bool { return d.well.admitted.Load() > well/3 })
	if held := scrape(t, doomed.Admin)[`sluice_leases_leased_tokens_total{store="redis"}`]; held == 0 {
		t.Error("the replica that dies never had a lease, want one")
	}
	if err := doomed.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	d.untilDry(t)
	lapsed, unanswered := int64(0), int64(0)
	for _, r := range replicas[1:] {
		m := scrape(t, r.Admin)
		lapsed += int64(m[`sluice_leases_lapsed_tokens_total{store="redis"}`])
		unanswered += int64(m[errorsBy("timeout")])
		if n := m[`sluice_leases_leased_tokens_total{store="redis"}`]; n == 0 {
			t.Error("a replica never had a lease, want all to have them")
		}
	}
	w, b := &d.well, &d.brook
	t.Logf("of the well %d of %d were admitted, %d not answered, %d lapsed beside; of the brook %d in %v", w.admitted.Load(), well, w.failed.Load(), lapsed, b.admitted.Load(), d.lasted())
	if got := w.admitted.Load(); got > well || got < well-share-w.failed.Load()-lapsed-unanswered*(share+1) {
		t.Errorf("of %d tokens %d were admitted, want no more, and no fewer than the %d of a lease, %d without an answer and %d that lapsed beside", well, got, share, w.failed.Load(), lapsed)
	}
	if got, most := b.admitted.Load(), brook+int64(d.lasted().Seconds()*perSecond); got > most || got < most/3 {
		t.Errorf("of the brook %d were admitted in %v, want at most %d, and not far fewer", got, d.lasted(), most)
	}
}

// startDoomed is serve for a replica that does not end well.
func startDoomed(t *testing.T, args ...string) *stack.Extauthz {
	t.Helper()
	path := program(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	e, err := stack.StartExtauthz(ctx, path, 0, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Signal(syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		<-e.Done()
	})
	return e
}

// A drinking is callers of all replicas, who ask for tokens of both buckets as
// fast as they are answered, until they are not.
type drinking struct {
	well, brook source
	begun       time.Time
	stop        context.CancelFunc
	wait        sync.WaitGroup
}

// A source is what was answered for one bucket.
type source struct {
	admitted, failed atomic.Int64
	last             atomic.Int64 // admitted, since the start
}

func (s *source) admit(at time.Duration) {
	s.admitted.Add(1)
	for last := s.last.Load(); last < int64(at) && !s.last.CompareAndSwap(last, int64(at)); last = s.last.Load() {
	}
}

func startDrinking(t *testing.T, replicas []*stack.Extauthz) *drinking {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	d := &drinking{begun: time.Now(), stop: stop}
	t.Cleanup(func() { stop(); d.wait.Wait() })
	for _, r := range replicas {
		conn, err := grpc.NewClient(r.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		for range 4 {
			d.wait.Go(func() { d.drink(ctx, conn, &d.well, "well") })
		}
		d.wait.Go(func() { d.drink(ctx, conn, &d.brook, "brook") })
	}
	return d
}

func (d *drinking) drink(ctx context.Context, conn *grpc.ClientConn, s *source, name string) {
	entry := &rlcommonv3.RateLimitDescriptor_Entry{Key: "from", Value: name}
	request := &rlsv3.RateLimitRequest{Domain: "edge", Descriptors: []*rlcommonv3.RateLimitDescriptor{{Entries: []*rlcommonv3.RateLimitDescriptor_Entry{entry}}}}
	for ctx.Err() == nil {
		one, cancel := context.WithTimeout(context.Background(), patience)
		resp, err := rlsv3.NewRateLimitServiceClient(conn).ShouldRateLimit(one, request)
		cancel()
		switch {
		case err != nil:
			s.failed.Add(1)
			return
		case resp.GetOverallCode() == rlsv3.RateLimitResponse_OK:
			s.admit(time.Since(d.begun))
		default:
			time.Sleep(time.Millisecond)
		}
	}
}

// untilDry waits until nothing of the well has been admitted for longer than
// leases last and denials are remembered, and stops.
func (d *drinking) untilDry(t *testing.T) {
	t.Helper()
	eventually(t, "the well is dry", func() bool {
		return time.Since(d.begun)-time.Duration(d.well.last.Load()) > leaseTime*17/16+1500*time.Millisecond
	})
	d.stop()
	d.wait.Wait()
}

// lasted is how long the brook was drunk of at most.
func (d *drinking) lasted() time.Duration { return time.Duration(d.brook.last.Load()) }
