package chaos_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rlcommonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/sluice-mesh/sluice/test/stack"
)

// versioned is a policy that shows its version in all that comes of it: in
// both limits, in the rule's name and in what headers are called.
func versioned(n int) string {
	return fmt.Sprintf(`domain: edge
headers: {names: {limit: X-Limit-%[1]d, rule: X-Rule-%[1]d}}
rules:
  - {name: path-%[1]d, match: {path: /}, per: [ip], limits: [{rate: %[2]d/1s}]}
  - {name: one-%[1]d, descriptor: [one], limits: [{rate: %[2]d/1s}]}
  - {name: two-%[1]d, descriptor: [two], limits: [{rate: %[2]d/1s}]}
`, n, versionLimit+n)
}

const versionLimit = 1_000_000

// faulty is a policy whose first rule is another version's, and whose last has
// a fault.
func faulty(n int) string {
	return versioned(n) + "  - {name: bad, match: {path: /bad}, limits: [{rate: 5/1q}]}\n"
}

// TestReload changes the policy 100 times under load, every second time to one
// with faults. Every request is decided by one policy, and by one that was in
// use while it was asked.
func TestReload(t *testing.T) {
	t.Parallel()
	r := startReloads(t)
	for i := 1; i <= 100; i++ {
		r.change(t, i, i%2 == 0)
		r.await(t, 2)
	}
	r.stop()
	r.wait.Wait()
	r.check(t)
	m := scrape(t, r.Admin)
	for result, want := range map[string]float64{"success": 51, "failure": 50} {
		if got := m[`sluice_policy_reloads_total{result="`+result+`"}`]; got != want {
			t.Errorf("%v reloads with result %s are counted, want %v", got, result, want)
		}
	}
}

// reloads are a policy that changes and those who ask meanwhile.
type reloads struct {
	*stack.Extauthz
	path string
	conn *grpc.ClientConn
	stop context.CancelFunc
	wait sync.WaitGroup
	// uses are the versions in use, and since when at the latest.
	uses []use

	mu    sync.Mutex
	views []view
}

// A use of a version of the policy: it came between two times.
type use struct {
	version       int
	written, read time.Time
}

// A view is what a request saw.
type view struct {
	begun, end time.Time
	versions   []int // one for each place that shows it
	err        error
}

func startReloads(t *testing.T) *reloads {
	t.Helper()
	r := &reloads{path: filepath.Join(t.TempDir(), "policy.yaml")}
	r.write(t, versioned(0))
	r.uses = []use{{}}
	r.Extauthz = serve(t, "--policy", r.path, "--store", "memory")
	var err error
	if r.conn, err = grpc.NewClient(r.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	for i := range callers {
		r.wait.Go(func() { r.ask(ctx, i%2 == 0) })
	}
	t.Cleanup(func() { stop(); r.wait.Wait(); r.conn.Close() })
	return r
}

// write replaces the policy at once.
func (r *reloads) write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(r.path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(r.path+".new", r.path); err != nil {
		t.Fatal(err)
	}
}

// change has the policy be version n, or one with a fault, and waits until that
// is read.
func (r *reloads) change(t *testing.T, n int, bad bool) {
	t.Helper()
	text, result := versioned(n), "success"
	if bad {
		text, result = faulty(n), "failure"
	}
	name := `sluice_policy_reloads_total{result="` + result + `"}`
	before, now := scrape(t, r.Admin)[name], time.Now()
	r.write(t, text)
	eventually(t, fmt.Sprintf("version %d is read", n), func() bool { return scrape(t, r.Admin)[name] > before })
	if !bad {
		r.uses = append(r.uses, use{version: n, written: now, read: time.Now()})
	}
}

// await waits for so many more views for each caller.
func (r *reloads) await(t *testing.T, n int) {
	t.Helper()
	count := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.views)
	}
	from := count()
	eventually(t, "more answers", func() bool { return count() >= from+n*callers })
}

func (r *reloads) ask(ctx context.Context, rls bool) {
	look := r.check1
	if rls {
		look = r.shouldRateLimit
	}
	for ctx.Err() == nil {
		v := view{begun: time.Now()}
		in, cancel := context.WithTimeout(context.Background(), patience)
		v.versions, v.err = look(in)
		cancel()
		v.end = time.Now()
		r.mu.Lock()
		r.views = append(r.views, v)
		r.mu.Unlock()
		time.Sleep(rest)
	}
}

// check1 asks ext_authz: the version is in the names of two headers and in the
// values of both.
func (r *reloads) check1(ctx context.Context) ([]int, error) {
	peer := &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{Address: "203.0.113.1"}}}
	resp, err := authv3.NewAuthorizationClient(r.conn).Check(ctx, &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Source:  &authv3.AttributeContext_Peer{Address: peer},
		Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{Method: "GET", Path: "/", Host: "example.com"}},
	}})
	if err != nil {
		return nil, err
	}
	var versions []int
	for _, h := range resp.GetOkResponse().GetResponseHeadersToAdd() {
		var inName, inValue int
		switch name, value := strings.ToLower(h.GetHeader().GetKey()), h.GetHeader().GetValue()+string(h.GetHeader().GetRawValue()); {
		case scan(name, "x-limit-%d", &inName) && scan(value, "%d", &inValue):
			versions = append(versions, inName, inValue-versionLimit)
		case scan(name, "x-rule-%d", &inName) && scan(value, "path-%d", &inValue):
			versions = append(versions, inName, inValue)
		}
	}
	if len(versions) != 4 {
		return nil, fmt.Errorf("Check = %v, want an answer with two headers of a version", resp)
	}
	return versions, nil
}

// shouldRateLimit asks the rate limit service: the version is in the limits of
// two descriptors.
func (r *reloads) shouldRateLimit(ctx context.Context) ([]int, error) {
	entry := func(key string) *rlcommonv3.RateLimitDescriptor {
		return &rlcommonv3.RateLimitDescriptor{Entries: []*rlcommonv3.RateLimitDescriptor_Entry{{Key: key, Value: "yes"}}}
	}
	resp, err := rlsv3.NewRateLimitServiceClient(r.conn).ShouldRateLimit(ctx, &rlsv3.RateLimitRequest{
		Domain: "edge", Descriptors: []*rlcommonv3.RateLimitDescriptor{entry("one"), entry("two")},
	})
	if err != nil {
		return nil, err
	}
	var versions []int
	for _, s := range resp.GetStatuses() {
		versions = append(versions, int(s.GetCurrentLimit().GetRequestsPerUnit())-versionLimit)
	}
	if len(versions) != 2 || resp.GetOverallCode() != rlsv3.RateLimitResponse_OK {
		return nil, fmt.Errorf("ShouldRateLimit = %v, want OK and two limits", resp)
	}
	return versions, nil
}

func scan(text, format string, n *int) bool {
	got, err := fmt.Sscanf(text, format, n)
	return err == nil && got == 1
}

// check looks at what each request saw.
func (r *reloads) check(t *testing.T) {
	t.Helper()
	for _, v := range r.views {
		if v.err != nil {
			t.Error(v.err)
			continue
		}
		for _, n := range v.versions {
			if n != v.versions[0] {
				t.Errorf("one request saw versions %v, want one", v.versions)
				break
			}
		}
		if !r.inUse(v) {
			t.Errorf("a request saw version %d, which was not in use from its beginning to its end", v.versions[0])
		}
	}
	t.Logf("%d requests under %d policies", len(r.views), len(r.uses))
}

// inUse says that what v saw may have been in use then.
func (r *reloads) inUse(v view) bool {
	for i, u := range r.uses {
		if u.version == v.versions[0] {
			return !v.end.Before(u.written) && (i+1 == len(r.uses) || !v.begun.After(r.uses[i+1].read))
		}
	}
	return false
}
