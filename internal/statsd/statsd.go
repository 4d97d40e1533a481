// Package statsd sends counters to a statsd server over TCP, and how long
// things took. It knows nothing of what they mean.
package statsd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/DataDog/datadog-go/v5/statsd"
)

// Options are what a Sender is made of. Addr and Counters are required.
type Options struct {
	Addr string // host:port
	// Counters returns all counters by name. What was added to one since the
	// last time is sent.
	Counters func() map[string]uint64
	// Gauges returns what goes up and down, by name; it is sent as it is. nil
	// is none.
	Gauges func() map[string]int64
	// Every is the time between two sendings. 0 means 10s.
	Every time.Duration
	Tags  []string
	Log   *slog.Logger // gets a line when sending fails, and when it works again; nil logs nothing
}

// A Sender sends to one server.
type Sender struct {
	opts   Options
	client *statsd.Client
	sent   map[string]uint64
}

// New makes a Sender. It connects when there is something to send.
func New(o Options) (*Sender, error) {
	if o.Counters == nil {
		return nil, errors.New("statsd: Options.Counters is required")
	}
	if o.Gauges == nil {
		o.Gauges = func() map[string]int64 { return nil }
	}
	if o.Every == 0 {
		o.Every = 10 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	client, err := statsd.NewWithWriter(&stream{addr: o.Addr, log: o.Log}, statsd.WithoutTelemetry(), statsd.WithTags(o.Tags),
		statsd.WithMaxBytesPerPayload(8<<10), statsd.WithoutOriginDetection())
	if err != nil {
		return nil, fmt.Errorf("send to statsd at %s: %w", o.Addr, err)
	}
	return &Sender{opts: o, client: client, sent: map[string]uint64{}}, nil
}

// Took sends how long something took that is called name. It does not wait.
func (s *Sender) Took(name string, d time.Duration) { _ = s.client.Timing(name, d, nil, 1) }

// Run sends until ctx ends, and once more then.
func (s *Sender) Run(ctx context.Context) {
	ticks := time.NewTicker(s.opts.Every)
	defer ticks.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticks.C:
		}
		s.send()
	}
	_ = s.client.Close() // what could not be sent is lost
}

func (s *Sender) send() {
	for name, n := range s.opts.Counters() {
		if added := n - s.sent[name]; added > 0 {
			_ = s.client.Count(name, int64(added), nil, 1) // a failure is the stream's to tell
		}
		s.sent[name] = n
	}
	for name, n := range s.opts.Gauges() {
		_ = s.client.Gauge(name, float64(n), nil, 1) // as above
	}
	_ = s.client.Flush() // as above
}

// dialTime and writeTime bound how long a server that is away holds up others.
const (
	dialTime  = 2 * time.Second
	writeTime = 2 * time.Second
)

// A stream writes lines to a connection that it opens anew when it fails.
type stream struct {
	addr string
	log  *slog.Logger
	mu   sync.Mutex
	conn net.Conn
	down bool
}

// Write sends lines, or loses them.
func (s *stream) Write(lines []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.write(lines)
	if down := err != nil; down != s.down {
		s.down = down
		if down {
			s.log.Warn("statsd does not take what is sent, it is lost until it does", "address", s.addr, "error", err)
		} else {
			s.log.Info("statsd takes what is sent again", "address", s.addr)
		}
	}
	if err != nil {
		return 0, err
	}
	return len(lines), nil
}

func (s *stream) write(lines []byte) error {
	if s.conn == nil {
		conn, err := net.DialTimeout("tcp", s.addr, dialTime)
		if err != nil {
			return err
		}
		s.conn = conn
	}
	if n := len(lines); n > 0 && lines[n-1] != '\n' {
		lines = append(lines[:n:n], '\n')
	}
	_ = s.conn.SetWriteDeadline(time.Now().Add(writeTime)) // a connection that has none fails below
	if _, err := s.conn.Write(lines); err != nil {
		_ = s.conn.Close() // it is of no use any more
		s.conn = nil
		return err
	}
	return nil
}

// Close closes the connection.
func (s *stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return nil
	}
	err := s.conn.Close()
	s.conn = nil
	return err
}
