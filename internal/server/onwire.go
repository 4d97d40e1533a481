package server

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

// An answerer answers requests as they are on the wire. One that is not known
// is left to generated code, and nothing was done about it.
type answerer interface {
	Answer(ctx context.Context, request string) (answer []byte, known bool, err error)
}

// A text is a request that nobody has read yet.
type text string

// An encoded is an answer that is written already.
type encoded []byte

// onWire returns the service of desc, whose only method is answered on the
// wire if the server can do that.
func onWire(desc grpc.ServiceDesc, server any) *grpc.ServiceDesc {
	a, ok := server.(answerer)
	if !ok || len(desc.Methods) != 1 {
		return &desc
	}
	m := &wiredMethod{
		answerer: a, server: server, generated: desc.Methods[0].Handler,
		info: &grpc.UnaryServerInfo{Server: server, FullMethod: "/" + desc.ServiceName + "/" + desc.Methods[0].MethodName},
	}
	m.handler = m.answer
	desc.Methods = []grpc.MethodDesc{{MethodName: desc.Methods[0].MethodName, Handler: m.handle}}
	return &desc
}

type wiredMethod struct {
	answerer
	server    any
	generated grpc.MethodHandler
	info      *grpc.UnaryServerInfo
	handler   grpc.UnaryHandler // answer: bound once, not with each request
}

// handle is a grpc.MethodHandler. It reads the request inside the interceptor,
// which catches panics.
//
//nolint:revive // grpc has ctx in the second place
func (m *wiredMethod) handle(_ any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
	request := new(text)
	if err := decode(request); err != nil {
		return nil, err
	}
	if interceptor == nil {
		return m.answer(ctx, request)
	}
	return interceptor(ctx, request, m.info, m.handler)
}

// answer is a grpc.UnaryHandler of a *text.
func (m *wiredMethod) answer(ctx context.Context, req any) (any, error) {
	request := *req.(*text) //nolint:forcetypeassert // handle makes it
	answer, known, err := m.Answer(ctx, string(request))
	if err != nil {
		return nil, err
	}
	if known {
		return encoded(answer), nil
	}
	return m.generated(m.server, ctx, request.decode, nil)
}

// decode reads t into a message.
func (t text) decode(v any) error {
	if err := newCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(t)}, v); err != nil {
		return status.Errorf(codes.Internal, "read the request: %v", err)
	}
	return nil
}
