package chaos_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// purse is what each spender may spend: nothing of it comes back meanwhile.
const purse = 200

// A spending is callers who ask, each for a bucket of its own and one request
// after the other, until they are over its limit.
type spending struct {
	conn     *grpc.ClientConn
	stop     context.CancelFunc
	wait     sync.WaitGroup
	mu       sync.Mutex
	spenders [][]spent // of each, its answers
}

// A spent is one answer: with 200 so many tokens are left.
type spent struct {
	begun, end time.Time
	status     int
	left       int
	err        error
}

func startSpending(t *testing.T, target string, callers int) *spending {
	t.Helper()
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &spending{conn: conn, stop: stop, spenders: make([][]spent, callers)}
	for i := range callers {
		s.wait.Go(func() { s.spend(ctx, i) })
	}
	t.Cleanup(func() { stop(); s.wait.Wait(); conn.Close() })
	return s
}

// spend asks until 429.
func (s *spending) spend(ctx context.Context, i int) {
	for ctx.Err() == nil {
		a := s.ask(i)
		s.mu.Lock()
		s.spenders[i] = append(s.spenders[i], a)
		s.mu.Unlock()
		if a.status == 429 {
			return
		}
		time.Sleep(rest)
	}
}

func (s *spending) ask(i int) spent {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	a := spent{begun: time.Now()}
	peer := &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{Address: fmt.Sprintf("203.0.113.%d", i)}}}
	resp, err := authv3.NewAuthorizationClient(s.conn).Check(ctx, &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Source:  &authv3.AttributeContext_Peer{Address: peer},
		Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{Method: "GET", Path: "/purse", Host: "example.com"}},
	}})
	a.end, a.err = time.Now(), err
	if denied := resp.GetDeniedResponse(); denied != nil {
		a.status = int(denied.GetStatus().GetCode())
		return a
	}
	if err == nil {
		a.status = 200
	}
	for _, h := range resp.GetOkResponse().GetResponseHeadersToAdd() {
		if strings.EqualFold(h.GetHeader().GetKey(), "x-ratelimit-remaining") {
			a.left, _ = strconv.Atoi(h.GetHeader().GetValue() + string(h.GetHeader().GetRawValue()))
		}
	}
	return a
}

// answers returns what each caller got until now.
func (s *spending) answers() [][]spent {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([][]spent, len(s.spenders))
	for i, list := range s.spenders {
		all[i] = list[:len(list):len(list)]
	}
	return all
}

// await waits until every caller has spent so many.
func (s *spending) await(t *testing.T, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d are spent by each", n), func() bool {
		for _, list := range s.answers() {
			if admitted(list) < n {
				return false
			}
		}
		return true
	})
}

func admitted(list []spent) (n int) {
	for _, a := range list {
		if a.status == 200 {
			n++
		}
	}
	return n
}

// served returns when the last of the callers was admitted or denied by its
// limit for the first time after from.
func (s *spending) served(t *testing.T, from time.Time) time.Time {
	t.Helper()
	var last time.Time
	eventually(t, "all are served again", func() bool {
		last = from
		for _, list := range s.answers() {
			first := firstServed(list, from)
			if first.IsZero() {
				return false
			}
			if first.After(last) {
				last = first
			}
		}
		return true
	})
	return last
}

func firstServed(list []spent, from time.Time) time.Time {
	for _, a := range list {
		if a.end.After(from) && a.status != 503 || a.status == 429 {
			return a.end
		}
	}
	return time.Time{}
}

// finish waits until all have spent what there is. Nobody may have got more
// than the limit, except what the store forgot at the time of the fault, if
// there was one: then what was left rose, once, over that time. It returns how
// much was forgotten, and how many requests were denied for want of the store.
func (s *spending) finish(t *testing.T, fault time.Time) (forgotten, failed int) {
	t.Helper()
	s.wait.Wait()
	for i, list := range s.answers() {
		lost, unanswered := 0, 0
		before := spent{left: purse, end: list[0].begun}
		for _, a := range list {
			if a.err != nil {
				t.Errorf("caller %d: %v, want an answer", i, a.err)
			}
			if a.status != 200 {
				unanswered++
				continue
			}
			if more := a.left - (before.left - 1); more > 0 {
				lost += more
				if fault.IsZero() || before.begun.After(fault) || a.end.Before(fault) {
					t.Errorf("caller %d has %d left after %d, and the store forgot nothing then", i, a.left, before.left)
				}
			}
			before = a
		}
		if got := admitted(list); got > purse+lost {
			t.Errorf("%d requests of caller %d are admitted, want %d and %d that the store forgot", got, i, purse, lost)
		}
		forgotten, failed = forgotten+lost, failed+unanswered-1
	}
	return forgotten, failed
}
