package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log" //nolint:depguard // net/http wants a Logger of it; this one is read, not written
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"time"
)

// HTTPOptions say what ServeHTTP serves. Handler is required.
type HTTPOptions struct {
	Handler http.Handler
	// DrainDelay and DrainTime are as in Options.
	DrainDelay, DrainTime time.Duration
	Log                   *slog.Logger // nil logs nothing
	Panicked              func()       // is called for each panic caught; may be nil
	MaxHeaderSize         int          // bytes of a request's headers; 0 means 1 MiB
	// IdleTime is how long a connection is kept that nothing is asked on; 0
	// means 65m.
	IdleTime time.Duration
	// TLS and Refused are as in Options.
	TLS     *tls.Config
	Refused func(reason string)
}

// ServeHTTP serves l until ctx ends, and then lets requests under way end. It
// closes l. The error is nil after that, also if it took too long. A handler
// that wants more than ten seconds asks for them, as those of pprof do.
func ServeHTTP(ctx context.Context, l net.Listener, o HTTPOptions) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Panicked == nil {
		o.Panicked = func() {}
	}
	if o.Refused == nil {
		o.Refused = func(string) {}
	}
	o.Log = o.Log.With("addr", l.Addr().String())
	s := o.server()
	failed := make(chan error, 1)
	go func() { failed <- o.serve(s, l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve HTTP on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	o.drain(s)
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("stop serving HTTP on %s: %w", l.Addr(), err)
	}
	return nil
}

// serve serves l, by TLS where it is so set.
func (o HTTPOptions) serve(s *http.Server, l net.Listener) error {
	if o.TLS == nil {
		return s.Serve(l)
	}
	return s.ServeTLS(l, "", "")
}

const (
	headerTime = 5 * time.Second
	// httpIdleTime is HTTPOptions.IdleTime where nothing is said: longer than
	// any proxy keeps a connection that it does not use, an hour for Envoy.
	// Whoever closes it first breaks the other's next request.
	httpIdleTime = 65 * time.Minute
)

func (o HTTPOptions) server() *http.Server {
	return &http.Server{
		Handler: o.guarded(),
		// What is asked about OPTIONS * is for the handler to answer.
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            headerTime,
		ReadTimeout:                  2 * headerTime,
		WriteTimeout:                 2 * headerTime,
		IdleTimeout:                  cmp.Or(o.IdleTime, httpIdleTime),
		MaxHeaderBytes:               o.MaxHeaderSize,
		TLSConfig:                    o.TLS,
		ErrorLog:                     log.New(errorLog(o.Refused), "", 0),
	}
}

// guarded answers a handler's panic with 500.
func (o HTTPOptions) guarded() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				o.Panicked()
				o.Log.Error("a handler panicked", slog.String("panic", withoutData(p)), slog.String("stack", string(debug.Stack())))
				http.Error(w, "internal error", http.StatusInternalServerError)
			}
		}()
		o.Handler.ServeHTTP(w, r)
	})
}

func (o HTTPOptions) drain(s *http.Server) {
	time.Sleep(o.DrainDelay)
	ctx, cancel := context.WithTimeout(context.Background(), o.DrainTime)
	defer cancel()
	if s.Shutdown(ctx) != nil {
		o.Log.Warn("requests over HTTP are still under way after the drain time, ending them")
		_ = s.Close() // nobody waits for what is cut off
	}
}
