package chaos_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
)

// An asker asks one question after the other.
type asker struct{ conn *grpc.ClientConn }

func newAsker(t *testing.T, target string) *asker {
	t.Helper()
	return &asker{dial(t, target)}
}

// ask returns the status for a request of peer, and with 429 the time that it
// tells to wait.
func (a *asker) ask(t *testing.T, path, peer string) (status int, wait time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	from := &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{Address: peer}}}
	resp, err := authv3.NewAuthorizationClient(a.conn).Check(ctx, &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Source:  &authv3.AttributeContext_Peer{Address: from},
		Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{Method: "GET", Path: path, Host: "example.com"}},
	}})
	if err != nil {
		t.Fatalf("Check(%s of %s): %v", path, peer, err)
	}
	denied := resp.GetDeniedResponse()
	if denied == nil {
		return 200, 0
	}
	for _, h := range denied.GetHeaders() {
		if strings.EqualFold(h.GetHeader().GetKey(), "retry-after") {
			seconds, _ := strconv.Atoi(h.GetHeader().GetValue() + string(h.GetHeader().GetRawValue()))
			wait = time.Duration(seconds) * time.Second
		}
	}
	return int(denied.GetStatus().GetCode()), wait
}

// want asks as often as there are statuses.
func (a *asker) want(t *testing.T, path, peer string, statuses ...int) {
	t.Helper()
	for i, want := range statuses {
		if got, _ := a.ask(t, path, peer); got != want {
			t.Errorf("request %d for %s of %s = %d, want %d", i, path, peer, got, want)
		}
	}
}

// drain asks until it is denied, and returns how many passed and the wait told.
func (a *asker) drain(t *testing.T, path string) (passed int, wait time.Duration) {
	t.Helper()
	for ; passed < 100; passed++ {
		status, told := a.ask(t, path, "198.51.100.1")
		if status == 429 {
			return passed, told
		}
		if status != 200 {
			t.Fatalf("%s = %d, want 200 or 429", path, status)
		}
	}
	t.Fatalf("%d requests for %s passed, want an end of it", passed, path)
	return 0, 0
}

// policyOf writes a policy, and returns where it is.
func policyOf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
