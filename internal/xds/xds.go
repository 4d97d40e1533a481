// Package xds takes limits from a management server, as Envoy Gateway's: it
// subscribes to ratelimit.config.ratelimit.v3.RateLimitConfig over an
// aggregated stream, the state of the world each time, and makes policies of
// what comes.
//
// A resource that cannot be used is refused, by a NACK that says why, and
// leaves its domain as it was and no other.
package xds

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/sluice-mesh/sluice/pkg/policy"
)

// TypeURL is the type of the resources.
const TypeURL = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"

// Options say where limits come from. Server, NodeID and Update are required.
type Options struct {
	Server string // host:port
	NodeID string
	// NodeMetadata is a JSON object about this node; "" for none.
	NodeMetadata string
	Headers      map[string]string // of the stream
	// TLS returns how the server is believed, for each connection. nil is
	// plain text.
	TLS        func() (*tls.Config, error)
	MaxMessage int // bytes of a response; 0 means 4 MiB
	// Retry is the wait after a stream that ended; after others in a row that
	// brought nothing it grows from Initial up to Max. Waits differ by up to
	// Jitter of them. 0 means 3s, 10s and 60s, and no jitter.
	Retry, Initial, Max time.Duration
	Jitter              float64
	// Merge makes one policy of all resources of one domain. Without it all
	// but the first are refused.
	Merge bool
	// OnError is what becomes of requests when the store does not answer.
	OnError policy.OnError
	// Update is called with the set that holds from now on, after each
	// response. The error is what was refused.
	Update func(*policy.Set, error)
	Log    *slog.Logger // nil logs nothing
}

// A Client follows one management server.
type Client struct {
	opts     Options
	node     *corev3.Node
	set      *policy.Set // in use
	answered bool        // the stream has brought something
}

// New makes a Client that has not connected.
func New(o Options) (*Client, error) {
	switch {
	case o.Server == "":
		return nil, errors.New("xds: Options.Server is required")
	case o.NodeID == "":
		return nil, errors.New("xds: Options.NodeID is required")
	case o.Update == nil:
		return nil, errors.New("xds: Options.Update is required")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	setDefault(&o.Retry, 3*time.Second)
	setDefault(&o.Initial, 10*time.Second)
	setDefault(&o.Max, time.Minute)
	c := &Client{opts: o, node: &corev3.Node{Id: o.NodeID, Cluster: o.NodeID}}
	if o.NodeMetadata != "" {
		m := new(structpb.Struct)
		if err := json.Unmarshal([]byte(o.NodeMetadata), m); err != nil {
			return nil, fmt.Errorf("xds: Options.NodeMetadata: %w", err)
		}
		c.node.Metadata = m
	}
	return c, nil
}

func setDefault(d *time.Duration, standard time.Duration) {
	if *d <= 0 {
		*d = standard
	}
}

// Run follows the server until ctx ends. It never gives up.
func (c *Client) Run(ctx context.Context) {
	vain := 0
	for ctx.Err() == nil {
		c.answered = false
		err := c.stream(ctx)
		if ctx.Err() != nil {
			return
		}
		if vain++; c.answered {
			vain = 0
		}
		wait := c.wait(vain)
		c.opts.Log.Warn("the stream of limits ended, those in use stay", "server", c.opts.Server, "error", err, "again_in", wait.Round(time.Millisecond))
		pause(ctx, wait)
	}
}

// wait is how long to wait after so many streams that brought nothing.
func (c *Client) wait(vain int) time.Duration {
	d := c.opts.Retry
	if vain > 1 {
		d = c.opts.Initial
		for range min(vain-2, 30) {
			d = min(d*3/2, c.opts.Max)
		}
	}
	return d + time.Duration(c.opts.Jitter*(2*rand.Float64()-1)*float64(d))
}

// stream connects, subscribes, and takes what comes until that fails.
func (c *Client) stream(ctx context.Context) error {
	conn, err := c.connect()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer conn.Close()
	for name, value := range c.opts.Headers {
		ctx = metadata.AppendToOutgoingContext(ctx, name, value)
	}
	s, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err != nil {
		return err
	}
	if err := s.Send(&discoveryv3.DiscoveryRequest{Node: c.node, TypeUrl: TypeURL}); err != nil {
		return err
	}
	return c.follow(ctx, s)
}

// A position is where a stream stands.
type position struct {
	accepted string // the version
	refused  string
	why      error
}

// follow takes what comes and answers it. A server may send what was refused
// again at once, and without end: then the answer waits.
func (c *Client) follow(ctx context.Context, s discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient) error {
	var at position
	for {
		resp, err := s.Recv()
		if err != nil {
			return err
		}
		if resp.GetTypeUrl() != TypeURL {
			continue
		}
		c.answered = true
		if at.why != nil && resp.GetVersionInfo() == at.refused {
			pause(ctx, c.opts.Retry)
		} else {
			at.take(resp.GetVersionInfo(), c.take(resp))
		}
		if err := s.Send(at.answer(c.node, resp.GetNonce())); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (p *position) take(version string, err error) {
	if p.why = err; err != nil {
		p.refused = version
		return
	}
	p.accepted = version
}

// answer is an ACK, or a NACK that says why.
func (p *position) answer(node *corev3.Node, nonce string) *discoveryv3.DiscoveryRequest {
	r := &discoveryv3.DiscoveryRequest{Node: node, TypeUrl: TypeURL, ResponseNonce: nonce, VersionInfo: p.accepted}
	if p.why != nil {
		r.ErrorDetail = &statuspb.Status{Code: int32(codes.InvalidArgument), Message: strings.ToValidUTF8(p.why.Error(), "?")}
	}
	return r
}

// pingTime is how often a silent connection is tried. Servers hang up on those
// who ask more often.
const pingTime = 5 * time.Minute

func (c *Client) connect() (*grpc.ClientConn, error) {
	creds := insecure.NewCredentials()
	if c.opts.TLS != nil {
		config, err := c.opts.TLS()
		if err != nil {
			return nil, err
		}
		creds = credentials.NewTLS(config)
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingTime}),
	}
	if c.opts.MaxMessage > 0 {
		options = append(options, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(c.opts.MaxMessage)))
	}
	return grpc.NewClient(c.opts.Server, options...)
}

// take makes a set of what came. Where something of it cannot be used, the
// policies in use stay of all domains that it has not: one of them may be what
// that was to be. The error says what that is.
func (c *Client) take(resp *discoveryv3.DiscoveryResponse) error {
	policies, faults := c.policies(resp.GetResources())
	for _, p := range c.set.Policies() {
		same := func(q *policy.Policy) bool { return q.Domain == p.Domain }
		if len(faults) > 0 && !slices.ContainsFunc(policies, same) {
			policies = append(policies, p)
		}
	}
	set, more := policy.NewSet(policy.SetOptions{Policies: policies})
	for _, f := range more {
		faults = append(faults, faultText(f))
	}
	if set != nil {
		c.set = set
	}
	var err error
	if len(faults) > 0 {
		err = errors.New(strings.Join(faults, "\n"))
	}
	c.opts.Update(c.set, err)
	return err
}
