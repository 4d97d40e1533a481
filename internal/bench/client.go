package bench

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// A Draw is what makes one request differ from another.
type Draw struct {
	Number uint64 // of the request, from 0
	Key    uint64
}

// An Answer is what came of one request: OK, Denied, Unknown, or the name of a
// gRPC code or a status of HTTP where there was no answer.
type Answer string

// What a server can answer.
const (
	OK      Answer = "ok"
	Denied  Answer = "denied"
	Unknown Answer = "unknown" // neither: Envoy allows then
)

// A Target is a server. Addr is required.
type Target struct {
	Addr        string      // as gRPC dials it: host:port, unix:PATH; of HTTP host:port
	Connections int         // that callers share; 0 means 1
	TLS         *tls.Config // nil is plain text
}

// A Client asks one server. It is safe for concurrent use.
type Client struct {
	door  string
	addr  string
	asks  []asker // one for each connection
	close func() error
}

// An asker asks over one connection.
type asker func(context.Context, Draw) (Answer, error)

// A Request is what is asked: an Authz, an RLS or an HTTP.
type Request interface {
	// compile reads the texts of the request.
	compile() (door, error)
}

// A door makes askers of a target, as many as it has connections.
type door interface {
	name() string
	dial(Target) (asks []asker, done func() error, err error)
}

// Dial makes a Client. It connects with the first request. Who has called it
// closes the Client.
func Dial(t Target, r Request) (*Client, error) {
	d, err := r.compile()
	if err != nil {
		return nil, err
	}
	if t.Addr == "" {
		return nil, errors.New("no address of a server given")
	}
	t.Connections = max(t.Connections, 1)
	asks, done, err := d.dial(t)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", t.Addr, err)
	}
	return &Client{d.name(), t.Addr, asks, done}, nil
}

// Close closes the connections.
func (c *Client) Close() error { return c.close() }

// dialGRPC makes the askers of a gRPC service.
func dialGRPC(t Target, over func(grpc.ClientConnInterface) asker) (asks []asker, done func() error, err error) {
	var conns []*grpc.ClientConn
	done = func() error {
		var errs []error
		for _, conn := range conns {
			errs = append(errs, conn.Close())
		}
		return errors.Join(errs...)
	}
	for range t.Connections {
		conn, err := grpc.NewClient(t.Addr, t.options()...)
		if err != nil {
			return nil, nil, errors.Join(err, done())
		}
		conns, asks = append(conns, conn), append(asks, over(conn))
	}
	return asks, done, nil
}

// How much a server may send that nobody has taken yet: the windows of a proxy's
// side, whatever those of the server's are. grpc would choose them by itself, and
// ping the server after each answer to do so, as no proxy does: the server would
// write twice for each request.
const (
	streamWindow = 256 << 10
	connWindow   = 1 << 20
)

func (t Target) options() []grpc.DialOption {
	transport := insecure.NewCredentials()
	if t.TLS != nil {
		transport = credentials.NewTLS(t.TLS)
	}
	return []grpc.DialOption{
		grpc.WithTransportCredentials(transport), grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(),
		grpc.WithStaticStreamWindowSize(streamWindow), grpc.WithStaticConnWindowSize(connWindow),
	}
}

// ask returns what there was instead of an answer beside an error.
func (c *Client) ask(ctx context.Context, caller int, d Draw) (Answer, error) {
	answer, err := c.asks[caller%len(c.asks)](ctx, d)
	if err != nil && answer == "" {
		return Answer(status.Code(err).String()), err
	}
	return answer, err
}
