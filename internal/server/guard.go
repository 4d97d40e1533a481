package server

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// guardCall makes an error of a handler's panic: one bad request must not end
// the answers to all others.
func (s *Server) guardCall(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	defer func() {
		if p := recover(); p != nil {
			resp, err = nil, s.panicked(info.FullMethod, p)
		}
	}()
	return handler(ctx, req)
}

// guardStream does the same for streams, and ends them when the server drains:
// who watches health would keep it from ending.
func (s *Server) guardStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = s.panicked(info.FullMethod, p)
		}
	}()
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(s.ending, cancel)()
	return handler(srv, ending{stream, ctx})
}

// An ending is a stream whose context ends with the server.
type ending struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // a stream's context can be replaced in no other way
}

// Context returns the context that ends with the server.
func (e ending) Context() context.Context { return e.ctx }

// RecvMsg waits for a message of the client's, but no longer than the server
// lives.
func (e ending) RecvMsg(m any) error {
	received := make(chan error, 1)
	go func() { received <- e.ServerStream.RecvMsg(m) }() // ends with the stream
	select {
	case err := <-received:
		return err
	case <-e.ctx.Done():
		return status.FromContextError(e.ctx.Err()).Err()
	}
}

func (s *Server) panicked(method string, p any) error {
	s.opts.Panicked()
	s.opts.Log.Error("a handler panicked", slog.String("method", method),
		slog.String("panic", withoutData(p)), slog.String("stack", string(debug.Stack())))
	return status.Error(codes.Internal, "internal error")
}

// withoutData says what p is, leaving out what a client may have written.
func withoutData(p any) string {
	if err, ok := p.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("%T", p)
}
