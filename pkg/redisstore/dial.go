package redisstore

import (
	"context"
	"net"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// redialEvery is the time between two dials of a pool that has given up.
const redialEvery = 50 * time.Millisecond

type dial = func(ctx context.Context, network, addr string) (net.Conn, error)

// A dialer dials for one pool. Once as many dials have failed as the pool has
// places, the pool answers calls by the last failure until a dial of its own
// succeeds, for which it takes a second from one to the next: too long for
// calls to wait that a server is back for. So the dial that comes through then
// is made again and again, in that pool's own time.
type dialer struct {
	dial   dial
	places int64
	stop   <-chan struct{} // ends what is made again and again
	made   *atomic.Int64   // counts the connections
	failed atomic.Int64
}

// persistent has c dial as a dialer of n does.
func persistent(c *redis.Options, n *nodes) {
	if c.PoolSize == 0 {
		c.PoolSize = 10 * runtime.GOMAXPROCS(0)
	}
	d := &dialer{dial: redis.NewDialer(c), places: int64(c.PoolSize), stop: n.stop, made: &n.made}
	c.Dialer = d.Dial
}

// Dial makes a connection.
func (d *dialer) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	gaveUp := d.failed.Load() >= d.places
	for {
		conn, err := d.dial(ctx, network, addr)
		switch {
		case err == nil:
			d.made.Add(1)
			if gaveUp {
				d.failed.Store(0)
			}
			return conn, nil
		case !gaveUp:
			d.failed.Add(1)
			return nil, err
		case !d.pause(ctx):
			return nil, err
		}
	}
}

// pause says whether to go on after it.
func (d *dialer) pause(ctx context.Context) bool {
	timer := time.NewTimer(redialEvery)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-d.stop:
	}
	return false
}
