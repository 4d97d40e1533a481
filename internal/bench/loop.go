package bench

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A loop is one run of callers.
type loop struct {
	client  *Client
	o       Options
	begun   time.Time
	next    atomic.Int64 // the number of the next request
	heard   atomic.Bool  // that somebody listens
	nobody  atomic.Bool  // does
	callers []*caller
}

// A caller has one request under way at a time.
type caller struct {
	number    int
	draw      func() uint64
	latencies *hdrhistogram.Histogram
	late      *hdrhistogram.Histogram // by how much requests began after they were due; nil in a closed loop
	answers   map[Answer]int64
	failure   error         // the first
	pause     time.Duration // after a connection that was refused
	done      atomic.Int64
	_         [64]byte // away from the next caller's count
}

func newLoop(c *Client, o Options) *loop {
	l := &loop{client: c, o: o}
	for i := range o.Callers {
		caller := &caller{number: i, draw: o.keys(i), latencies: newHistogram(), answers: map[Answer]int64{}}
		if o.Rate > 0 {
			caller.late = newHistogram()
		}
		l.callers = append(l.callers, caller)
	}
	return l
}

// Latencies are kept in ns, from a microsecond to a minute, to three digits.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(int64(time.Microsecond), int64(time.Minute), 3)
}

// keys returns the keys of one caller.
func (o *Options) keys(caller int) func() uint64 {
	r := rand.New(rand.NewPCG(o.Seed, uint64(caller)))
	if o.Zipf > 1 {
		return rand.NewZipf(r, o.Zipf, 1, o.Keys-1).Uint64
	}
	return func() uint64 { return r.Uint64N(o.Keys) }
}

// run returns how long it took until the last answer was there. The error is
// that nobody ever listened.
func (l *loop) run(ctx context.Context) (time.Duration, error) {
	var callers, progress sync.WaitGroup
	ended := make(chan struct{})
	l.begun = time.Now()
	if l.o.Progress != nil {
		progress.Go(func() { l.progress(l.o.Progress, ended) })
	}
	for _, c := range l.callers {
		callers.Go(func() { l.call(ctx, c) })
	}
	callers.Wait()
	took := time.Since(l.begun)
	close(ended)
	progress.Wait()
	if l.nobody.Load() {
		return took, fmt.Errorf("nobody listens at %s, the connection was refused: start the server, or ask at another address", l.client.addr)
	}
	return took, nil
}

// call asks one request after the other.
func (l *loop) call(ctx context.Context, c *caller) {
	var a *alarm
	if c.late != nil {
		a = newAlarm(ctx)
		defer a.close()
	}
	for ctx.Err() == nil && !l.nobody.Load() {
		n := l.next.Add(1) - 1
		due, ok := l.due(n)
		if !ok {
			return
		}
		if c.late != nil {
			a.wait(ctx, due)
			record(c.late, time.Since(due))
		}
		answer, err := l.ask(ctx, c, Draw{Number: uint64(n), Key: c.draw()})
		if ctx.Err() != nil {
			return // it was cut off by us
		}
		c.count(answer, err, time.Since(due))
		l.heed(ctx, c, err)
	}
}

const (
	firstPause = time.Millisecond
	lastPause  = 100 * time.Millisecond
)

// heed ends the run if nobody listens from the start, and slows down a caller
// when nobody does any more: trying as fast as it can would tell nothing.
func (l *loop) heed(ctx context.Context, c *caller, err error) {
	switch {
	case !refused(err):
		l.heard.Store(true)
		c.pause = 0
	case !l.heard.Load():
		l.nobody.Store(true)
	case l.o.Rate == 0:
		c.pause = min(max(2*c.pause, firstPause), lastPause)
		sleep(ctx, c.pause)
	}
}

// refused says that err is of a connection that nobody listened for. gRPC hands
// on no more than its text.
func refused(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	return strings.Contains(text, "connect: "+syscall.ECONNREFUSED.Error()) || strings.Contains(text, "connect: "+syscall.ENOENT.Error())
}

func (c *caller) count(a Answer, err error, took time.Duration) {
	record(c.latencies, took)
	c.answers[a]++
	if c.failure == nil {
		c.failure = err
	}
	c.done.Add(1)
}

// due returns when request n is to begin, and whether it is to be at all.
func (l *loop) due(n int64) (time.Time, bool) {
	due := time.Now()
	if l.o.Rate > 0 {
		due = l.begun.Add(time.Duration(float64(n) / l.o.Rate * float64(time.Second)))
	}
	inTime := l.o.Duration == 0 || due.Sub(l.begun) < l.o.Duration
	return due, inTime && (l.o.Requests == 0 || n < l.o.Requests)
}

func (l *loop) ask(ctx context.Context, c *caller, d Draw) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, l.o.Timeout)
	defer cancel()
	return l.client.ask(ctx, c.number, d)
}

// record keeps d, as a minute if it is longer.
func record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(int64(min(max(d, 0), time.Minute))) // never out of range
}

// progress says each second how it goes.
func (l *loop) progress(w io.Writer, ended <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	before := int64(0)
	for second := 1; ; second++ {
		select {
		case <-ended:
			fmt.Fprintf(w, "\r%60s\r", "")
			return
		case <-tick.C:
		}
		done := int64(0)
		for _, c := range l.callers {
			done += c.done.Load()
		}
		fmt.Fprintf(w, "\r%4d s  %9d answers  %8d a second   ", second, done, done-before)
		before = done
	}
}

// sleep returns after d, or when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
