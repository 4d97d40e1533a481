package chaos_test

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A way leads to a server, and can be made a bad one.
type way struct {
	addr, to string
	// late is how late answers come, as a time.Duration.
	late atomic.Int64
	// cuts has connections end: every second at its first question, the others
	// at a later one.
	cuts atomic.Bool

	mu     sync.Mutex
	count  int
	open   map[net.Conn]bool
	closed bool
}

func openWay(t *testing.T, to string) *way {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &way{addr: l.Addr().String(), to: to, open: map[net.Conn]bool{}}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { w.serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		w.mu.Lock()
		w.closed = true
		w.mu.Unlock()
		w.cut()
		all.Wait()
	})
	return w
}

// cut ends the connections that are open.
func (w *way) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.open {
		c.Close()
	}
}

// enter notes an open connection, and says which one it is, from 1.
func (w *way) enter(c net.Conn) (n int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count++
	if !w.closed {
		w.open[c] = true
	}
	return w.count, !w.closed
}

func (w *way) leave(c net.Conn) {
	c.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, c)
}

func (w *way) serve(client net.Conn) {
	defer w.leave(client)
	n, ok := w.enter(client)
	server, err := net.Dial("tcp", w.to)
	if err != nil || !ok {
		return
	}
	defer server.Close()
	var both sync.WaitGroup
	both.Go(func() {
		defer server.Close()
		w.ask(client, server, 1+n%2*20)
	})
	w.answer(server, client)
	client.Close()
	both.Wait()
}

// ask passes questions on; with cuts, that many less one.
func (w *way) ask(client, server net.Conn, luck int) {
	b := make([]byte, 32<<10)
	for {
		n, err := client.Read(b)
		if err != nil {
			return
		}
		if w.cuts.Load() {
			if luck--; luck <= 0 {
				return
			}
		}
		if _, err := server.Write(b[:n]); err != nil {
			return
		}
	}
}

func (w *way) answer(server, client net.Conn) {
	b := make([]byte, 32<<10)
	for {
		n, err := server.Read(b)
		if err != nil {
			return
		}
		if late := time.Duration(w.late.Load()); late > 0 {
			time.Sleep(late)
		}
		if _, err := client.Write(b[:n]); err != nil {
			return
		}
	}
}
