package server_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-mesh/sluice/internal/server"
)

// serveHTTP serves h, and returns its address and how to end it.
func serveHTTP(t *testing.T, o server.HTTPOptions) (url string, end func() error) {
	t.Helper()
	l, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.ServeHTTP(ctx, l, o) }()
	t.Cleanup(cancel)
	return "http://" + l.Addr().String(), func() error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(20 * time.Second):
			t.Fatal("ServeHTTP has not ended after 20s")
			return nil
		}
	}
}

func ask(t *testing.T, method, url, path string) (int, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if path != "" {
		r.URL.Opaque = path
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

func TestServeHTTPEndsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan struct{}), make(chan struct{})
	url, end := serveHTTP(t, server.HTTPOptions{DrainTime: 20 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-answer
		w.WriteHeader(http.StatusTeapot)
	})})
	got := make(chan int)
	go func() {
		status, _ := ask(t, "GET", url, "")
		got <- status
	}()
	<-asked
	time.AfterFunc(10*time.Millisecond, func() { close(answer) })
	if err := end(); err != nil {
		t.Errorf("ServeHTTP = %v after a drain, want nil", err)
	}
	if status := <-got; status != http.StatusTeapot {
		t.Errorf("a request under way = %d, want %d", status, http.StatusTeapot)
	}
	if status, err := ask(t, "GET", url, ""); err == nil {
		t.Errorf("a request after the end = %d, want an error", status)
	}
}

func TestServeHTTPCutsOff(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	url, end := serveHTTP(t, server.HTTPOptions{DrainTime: time.Millisecond, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	})})
	failed := make(chan error)
	go func() {
		_, err := ask(t, "GET", url, "")
		failed <- err
	}()
	<-asked
	if err := end(); err != nil {
		t.Errorf("ServeHTTP = %v after the drain time, want nil", err)
	}
	if err := <-failed; err == nil {
		t.Error("a request that does not end = nil, want an error")
	}
}

func TestServeHTTPCatchesPanics(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	var panics atomic.Int32
	url, end := serveHTTP(t, server.HTTPOptions{
		Log: slog.New(slog.NewTextHandler(&log, nil)), Panicked: func() { panics.Add(1) }, DrainTime: time.Second,
		Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("secret") }),
	})
	status, err := ask(t, "GET", url, "")
	if err != nil || status != http.StatusInternalServerError || panics.Load() != 1 {
		t.Errorf("a panic = %d, %v, counted %d, want 500, nil, 1", status, err, panics.Load())
	}
	if err := end(); err != nil || !strings.Contains(log.String(), `msg="a handler panicked" addr=127.0.0.1:`) || strings.Contains(log.String(), "secret") {
		t.Errorf("ServeHTTP = %v, logs %q, want the panic, at its address, without its text", err, log.String())
	}
}

func TestServeHTTPEndsIdleConnections(t *testing.T) {
	t.Parallel()
	url, end := serveHTTP(t, server.HTTPOptions{IdleTime: time.Millisecond, Handler: http.NotFoundHandler()})
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if answer, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 404 ") {
		t.Errorf("a connection that nothing more is asked on: read %q, %v; want an answer and the end", answer, err)
	}
	if err := end(); err != nil {
		t.Errorf("ServeHTTP = %v, want nil", err)
	}
}

// net/http would answer it by itself, and let it pass unasked.
func TestServeHTTPAsksAboutEverything(t *testing.T) {
	t.Parallel()
	url, end := serveHTTP(t, server.HTTPOptions{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })})
	if status, err := ask(t, "OPTIONS", url, "*"); err != nil || status != http.StatusTeapot {
		t.Errorf("OPTIONS * = %d, %v, want %d", status, err, http.StatusTeapot)
	}
	if err := end(); err != nil {
		t.Errorf("ServeHTTP = %v, want nil", err)
	}
}

func TestServeHTTPFails(t *testing.T) {
	t.Parallel()
	l, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := server.ServeHTTP(t.Context(), l, server.HTTPOptions{Handler: http.NotFoundHandler()}); err == nil || !strings.Contains(err.Error(), "serve HTTP on 127.0.0.1:") {
		t.Errorf("ServeHTTP of a closed listener = %v, want an error", err)
	}
}
