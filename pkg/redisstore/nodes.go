package redisstore

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// lookTime bounds a look at who keeps what. Its callers wait less.
	lookTime = time.Second
	// lookEvery is the least time between two looks: a server that stays away
	// is not to cost everybody a look.
	lookEvery = 100 * time.Millisecond
	// followEvery is the time between looks that nothing asks for.
	followEvery = 250 * time.Millisecond
	// keepAbsent is how long connections to a server are kept that keeps
	// nothing any more: calls may be under way.
	keepAbsent = time.Minute
)

// nodes are the servers, and which of them keeps which slot. With a source
// this may change; then what fails is a reason to look again.
type nodes struct {
	options func(addr string) *redis.Options
	source  source // nil: the first view holds for ever
	serve   func(*node, *batch)
	view    atomic.Pointer[view]

	mu      sync.Mutex
	clients map[string]*node
	looking *looking // under way; nil if none is
	looked  time.Time
	closed  bool
	wait    sync.WaitGroup // for what runs beside
	stop    chan struct{}
	made    atomic.Int64 // connections, ever
}

// A node is a server that is or was one of the view.
type node struct {
	client *redis.Client
	queue  *queue
	absent time.Time // since when it is in no view; zero while it is
}

// A looking is a look under way. err is set before done is closed.
type looking struct {
	done chan struct{}
	err  error
}

var (
	errNobody = errors.New("no server keeps the bucket's slot")
	errClosed = redis.ErrClosed
)

// client returns the client of the server at addr.
func (n *nodes) client(addr string) (*redis.Client, error) {
	at, err := n.node(addr)
	if err != nil {
		return nil, err
	}
	return at.client, nil
}

// node returns the server at addr.
func (n *nodes) node(addr string) (*node, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, errClosed
	}
	return n.known(addr), nil
}

func (n *nodes) known(addr string) *node {
	at := n.clients[addr]
	if at == nil {
		o := n.options(addr)
		at = &node{client: redis.NewClient(o), queue: newQueue(min(maxLanes, o.PoolSize))}
		n.clients[addr] = at
		for range at.queue.lanes {
			n.wait.Go(func() { n.lane(at) })
		}
	}
	return at
}

// lane carries out one batch of at after the other.
func (n *nodes) lane(at *node) {
	var b batch
	for range at.queue.wake {
		// Whoever is about to come is let go first: one that follows alone costs
		// as much as a batch. With nobody else to run this takes no time.
		runtime.Gosched()
		for woken := true; at.queue.take(&b, woken); woken = false {
			n.serve(at, &b)
			b.reset()
			runtime.Gosched()
		}
	}
}

// see has v hold from now on.
func (n *nodes) see(v *view) {
	for _, addr := range v.addrs {
		v.nodes = append(v.nodes, n.known(addr))
	}
	n.view.Store(v)
}

func (at *node) close() error {
	at.queue.close()
	return at.client.Close()
}

// current returns the view, which is looked for if there is none yet.
func (n *nodes) current(ctx context.Context) (*view, error) {
	if v := n.view.Load(); v != nil {
		return v, nil
	}
	return n.newer(ctx, nil)
}

// newer returns a view that is newer than old if there is one soon, else old.
func (n *nodes) newer(ctx context.Context, old *view) (*view, error) {
	l := n.look(old, "")
	if l == nil {
		return n.latest()
	}
	select {
	case <-l.done:
	case <-ctx.Done():
		return old, ctx.Err()
	}
	if v, _ := n.latest(); v != nil {
		return v, nil
	}
	return nil, l.err
}

func (n *nodes) latest() (*view, error) {
	if v := n.view.Load(); v != nil {
		return v, nil
	}
	return nil, errClosed
}

// look has the source look again, unless there is a newer view than old, or it
// has just looked. It returns the look that is under way, or nil.
func (n *nodes) look(old *view, hint string) *looking {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.source == nil || n.closed || n.view.Load() != old:
		return nil
	case n.looking != nil:
		return n.looking
	case old != nil && time.Since(n.looked) < lookEvery:
		return nil
	}
	l := &looking{done: make(chan struct{})}
	n.looking = l
	n.wait.Go(func() { n.run(l, hint) })
	return l
}

// begin runs f beside, unless the nodes are closed. Their end waits for it.
func (n *nodes) begin(f func()) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		n.wait.Go(f)
	}
	return !n.closed
}

// follow looks again and again until stop is closed, for servers that may be
// replaced without a word of their own.
func (n *nodes) follow(stop <-chan struct{}) {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			n.look(n.view.Load(), "")
		case <-stop:
			return
		}
	}
}

func (n *nodes) run(l *looking, hint string) {
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	v, err := n.source.look(ctx, hint)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.looking, n.looked = nil, time.Now()
	if l.err = err; err == nil && !n.closed {
		n.see(v)
		n.forget(v)
	}
	close(l.done)
}

// forget closes the clients of servers that are in no view since long.
func (n *nodes) forget(v *view) {
	present := make(map[string]bool, len(v.addrs))
	for _, addr := range v.addrs {
		present[addr] = true
	}
	now := time.Now()
	for addr, at := range n.clients {
		switch {
		case present[addr]:
			at.absent = time.Time{}
		case at.absent.IsZero():
			at.absent = now
		case now.Sub(at.absent) > keepAbsent:
			_ = at.close()
			delete(n.clients, addr)
		}
	}
}

// each calls f for every server that keeps anything, and returns the first
// error.
func (n *nodes) each(ctx context.Context, f func(*redis.Client) error) error {
	v, err := n.current(ctx)
	if err != nil {
		return err
	}
	errs := make([]error, len(v.addrs))
	var wait sync.WaitGroup
	for i, addr := range v.addrs {
		wait.Go(func() {
			client, err := n.client(addr)
			if err == nil {
				err = f(client)
			}
			errs[i] = err
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			n.look(v, "")
			return err
		}
	}
	return nil
}

// connections returns how many there are, and how many there ever were.
func (n *nodes) connections() (open, made int64) {
	made = n.made.Load() // first: one that is made meanwhile is not to seem closed
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, at := range n.clients {
		open += int64(at.client.PoolStats().TotalConns)
	}
	return open, max(made, open)
}

func (n *nodes) close() error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return errClosed
	}
	n.closed = true
	close(n.stop)
	var errs []error
	for _, at := range n.clients {
		errs = append(errs, at.close())
	}
	n.mu.Unlock()
	if n.source != nil {
		errs = append(errs, n.source.close())
	}
	n.wait.Wait()
	return errors.Join(errs...)
}
