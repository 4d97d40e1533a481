package chaos_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rlcommonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	callers = 6
	// rest is between two requests of a caller: the load is to be steady, not
	// all that the machine bears.
	rest = 2 * time.Millisecond
)

// The kinds of requests, by their rule's on_error.
const (
	open  = "open"  // allow
	shut  = "shut"  // deny
	alone = "alone" // local
)

var kinds = []string{open, shut, alone}

// An answer is one request's: status is that of the client. The rate limit
// service has 200 and 429 alone.
type answer struct {
	caller     int
	kind       string
	rls        bool
	begun, end time.Time
	status     int
	err        error
}

// A load is callers that ask one after the other.
type load struct {
	conn *grpc.ClientConn
	stop context.CancelFunc
	wait sync.WaitGroup
	// hush keeps callers from asking while it is locked.
	hush sync.RWMutex

	mu      sync.Mutex
	answers []answer
}

func startLoad(t *testing.T, target string) *load {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	l := &load{conn: dial(t, target), stop: stop}
	for i := range callers {
		l.wait.Go(func() { l.call(ctx, i) })
	}
	t.Cleanup(l.end)
	return l
}

// dial returns a connection that ends with the test.
func dial(t *testing.T, target string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// end ends the load once what it asked is answered.
func (l *load) end() {
	l.stop()
	l.wait.Wait()
}

func (l *load) call(ctx context.Context, caller int) {
	for n := 0; ctx.Err() == nil; n++ {
		l.hush.RLock()
		a := l.request(caller, n, time.Now())
		l.hush.RUnlock()
		l.note(a)
		time.Sleep(rest)
	}
}

// request makes a caller's nth request, begun at that time. What ends the load
// does not end it.
func (l *load) request(caller, n int, begun time.Time) answer {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	a := answer{caller: caller, kind: kinds[(n+caller)%3], rls: n/3%2 == 1, begun: begun}
	a.status, a.err = l.ask(ctx, a)
	a.end = time.Now()
	return a
}

func (l *load) note(answers ...answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers = append(l.answers, answers...)
}

func (l *load) ask(ctx context.Context, a answer) (int, error) {
	if a.rls {
		return l.shouldRateLimit(ctx, a)
	}
	peer := &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{Address: fmt.Sprintf("203.0.113.%d", a.caller)}}}
	resp, err := authv3.NewAuthorizationClient(l.conn).Check(ctx, &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Source:  &authv3.AttributeContext_Peer{Address: peer},
		Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{Method: "GET", Path: "/" + a.kind, Host: "example.com"}},
	}})
	if err != nil {
		return 0, err
	}
	if denied := resp.GetDeniedResponse(); denied != nil {
		return int(denied.GetStatus().GetCode()), nil
	}
	return 200, nil
}

func (l *load) shouldRateLimit(ctx context.Context, a answer) (int, error) {
	resp, err := rlsv3.NewRateLimitServiceClient(l.conn).ShouldRateLimit(ctx, &rlsv3.RateLimitRequest{
		Domain: "edge",
		Descriptors: []*rlcommonv3.RateLimitDescriptor{{Entries: []*rlcommonv3.RateLimitDescriptor_Entry{
			{Key: a.kind, Value: "yes"}, {Key: "who", Value: fmt.Sprint(a.caller)},
		}}},
	})
	switch {
	case err != nil:
		return 0, err
	case resp.GetOverallCode() == rlsv3.RateLimitResponse_OVER_LIMIT:
		return 429, nil
	default:
		return 200, nil
	}
}

// between returns the answers to what was asked from then on and answered by
// the time to.
func (l *load) between(from, to time.Time) []answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	var some []answer
	for _, a := range l.answers {
		if !a.begun.Before(from) && !a.end.After(to) {
			some = append(some, a)
		}
	}
	return some
}

// await waits for n answers of every kind to what is asked from now on.
func (l *load) await(t *testing.T, n int) {
	t.Helper()
	from, next, count := time.Now(), l.count(), map[string]int{}
	eventually(t, fmt.Sprintf("%d answers of every kind", n), func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, a := range l.answers[next:] {
			if !a.begun.Before(from) {
				count[a.kind]++
			}
		}
		next = len(l.answers)
		return count[open] >= n && count[shut] >= n && count[alone] >= n
	})
}

// count returns how many answers there are.
func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.answers)
}

// times are how long answers took.
func times(answers []answer) []time.Duration {
	var list []time.Duration
	for _, a := range answers {
		list = append(list, a.end.Sub(a.begun))
	}
	slices.Sort(list)
	return list
}

// at returns the time that so many hundredths of list are within.
func at(list []time.Duration, hundredths int) time.Duration {
	if len(list) == 0 {
		return 0
	}
	return list[min(len(list)*hundredths/100, len(list)-1)]
}
