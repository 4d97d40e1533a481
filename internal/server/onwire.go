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
	m := wiredMethod{a, desc.Methods[0].Handler, "/" + desc.ServiceName + "/" + desc.Methods[0].MethodName}
	desc.Methods = []grpc.MethodDesc{{MethodName: desc.Methods[0].MethodName, Handler: m.handle}}
	return &desc
}

type wiredMethod struct {
	answerer
	generated grpc.MethodHandler
	name      string
}

// handle is a grpc.MethodHandler. It reads the request inside the interceptor,
// which catches panics.
//
//nolint:revive // grpc has ctx in the second place
func (m wiredMethod) handle(server any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
	var request text
	if err := decode(&request); err != nil {
		return nil, err
	}
	answer := func(ctx context.Context, _ any) (any, error) { return m.answer(ctx, server, request) }
	if interceptor == nil {
		return answer(ctx, nil)
	}
	return interceptor(ctx, &request, &grpc.UnaryServerInfo{Server: server, FullMethod: m.name}, answer)
}

func (m wiredMethod) answer(ctx context.Context, server any, request text) (any, error) {
	answer, known, err := m.Answer(ctx, string(request))
	if err != nil {
		return nil, err
	}
	if known {
		return encoded(answer), nil
	}
	return m.generated(server, ctx, request.decode, nil)
}

// decode reads t into a message.
func (t text) decode(v any) error {
	if err := newCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(t)}, v); err != nil {
		return status.Errorf(codes.Internal, "read the request: %v", err)
	}
	return nil
}
