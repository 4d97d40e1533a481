package redisstore_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-mesh/sluice/pkg/redisstore"
)

// TestRedial has a server refuse until a moment. A pool of two places has given
// up after two failures: what it dials then comes through soon after that
// moment, not a second after it.
func TestRedial(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("refused")
		back := time.Now().Add(10 * time.Second)
		dial := redisstore.Redialer(2, nil, func(context.Context, string, string) (net.Conn, error) {
			if time.Now().Before(back) {
				return nil, refused
			}
			conn, other := net.Pipe()
			_ = other.Close()
			return conn, nil
		})
		for i := range 2 {
			if _, err := dial(t.Context(), "tcp", "a:1"); !errors.Is(err, refused) {
				t.Errorf("dial %d = %v, want what the server said", i, err)
			}
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := dial(short, "tcp", "a:1"); !errors.Is(err, refused) || short.Err() == nil {
			t.Errorf("dial(with a second) = %v, its context has %v; want what the server said when that is over", err, short.Err())
		}
		conn, err := dial(t.Context(), "tcp", "a:1")
		if err != nil {
			t.Fatalf("dial(a server that comes back) = %v, want no error", err)
		}
		defer conn.Close()
		if late := time.Since(back); late < 0 || late > 100*time.Millisecond {
			t.Errorf("dial(a server that comes back) came through %v after that, want 100ms at most", late)
		}
	})
}

// TestRedialEnds has a pool that has given up be closed.
func TestRedialEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		refused := errors.New("refused")
		dial := redisstore.Redialer(1, stop, func(context.Context, string, string) (net.Conn, error) { return nil, refused })
		_, _ = dial(t.Context(), "tcp", "a:1")
		time.AfterFunc(time.Minute, func() { close(stop) })
		began := time.Now()
		if _, err := dial(t.Context(), "tcp", "a:1"); !errors.Is(err, refused) {
			t.Errorf("dial(closed pool) = %v, want what the server said", err)
		}
		if lasted := time.Since(began); lasted != time.Minute {
			t.Errorf("dial(pool closed after a minute) lasted %v, want a minute", lasted)
		}
	})
}
