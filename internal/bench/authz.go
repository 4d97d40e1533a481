package bench

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
)

// Authz asks as Envoy's ext_authz filter does. In Path, Host and the values of
// Headers, {key} stands for the key of a request and {n} for its number. The
// zero value asks for GET / of a host "bench".
type Authz struct {
	Method, Path, Host string
	Headers            []Entry
	// Peer is the address of the direct peer: one for all, or a network, of
	// which each key gets an address. "" means 203.0.113.7.
	Peer string
	// Context are the route's context extensions.
	Context map[string]string
}

type authz struct {
	Authz
	peer       network
	path, host template
	names      []string // of headers, in lower case, as Envoy sends them
	values     []template
}

func (a Authz) compile() (door, error) {
	a.Method, a.Path, a.Host = cmp.Or(a.Method, "GET"), cmp.Or(a.Path, "/"), cmp.Or(a.Host, "bench")
	peer, err := parseNetwork(cmp.Or(a.Peer, "203.0.113.7"))
	if err != nil {
		return nil, fmt.Errorf("peer: %w", err)
	}
	compiled := &authz{Authz: a, peer: peer, path: parseTemplate(a.Path), host: parseTemplate(a.Host)}
	for _, h := range a.Headers {
		compiled.names = append(compiled.names, strings.ToLower(h.Key))
		compiled.values = append(compiled.values, parseTemplate(h.Value))
	}
	return compiled, nil
}

func (a *authz) name() string { return "ext_authz" }

func (a *authz) dial(t Target) ([]asker, func() error, error) { return dialGRPC(t, a.over) }

func (a *authz) over(conn grpc.ClientConnInterface) asker {
	return func(ctx context.Context, d Draw) (Answer, error) {
		found := verdict{path: []protowire.Number{1, 1}} // the code of the status
		if err := conn.Invoke(ctx, authv3.Authorization_Check_FullMethodName, a.request(d), &found, readVerdict); err != nil {
			return "", err
		}
		if int32(found.value) != 0 {
			return Denied, nil
		}
		return OK, nil
	}
}

func (a *authz) request(d Draw) *authv3.CheckRequest {
	path, host := a.path.fill(d), a.host.fill(d)
	headers := make(map[string]string, 4+len(a.names))
	headers[":method"], headers[":path"], headers[":authority"], headers[":scheme"] = a.Method, path, host, "https"
	for i, name := range a.names {
		headers[name] = a.values[i].fill(d)
	}
	return &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Source: a.source(d),
		Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{
			Method: a.Method, Path: path, Host: host, Scheme: "https", Protocol: "HTTP/2", Headers: headers,
		}},
		ContextExtensions: a.Context,
	}}
}

func (a *authz) source(d Draw) *authv3.AttributeContext_Peer {
	return &authv3.AttributeContext_Peer{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{
		SocketAddress: &corev3.SocketAddress{
			Address:       a.peer.addr(d.Key).String(),
			PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 40000},
		},
	}}}
}
