package main

import (
	"bufio"
	_ "embed"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// bucketScript is about the least that a script can do which keeps a bucket.
//
//go:embed bucket.lua
var bucketScript string

// A raw is a connection to a Redis without a client library in between.
type raw struct {
	conn net.Conn
	in   *bufio.Reader
	sha  string
}

func dialRaw(addr string) (*raw, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	r := &raw{conn: conn, in: bufio.NewReader(conn)}
	if _, err = r.do("SCRIPT", "LOAD", bucketScript); err == nil { // a length
		r.sha, err = r.line()
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return r, nil
}

// do sends a command and returns the first line of the reply.
func (r *raw) do(words ...string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	if _, err := r.conn.Write([]byte(b.String())); err != nil {
		return "", err
	}
	return r.line()
}

func (r *raw) line() (string, error) {
	line, err := r.in.ReadString('\n')
	if err == nil && strings.HasPrefix(line, "-") {
		err = fmt.Errorf("redis says %q", line)
	}
	return strings.TrimSpace(line), err
}

// p50 takes from one bucket after the other, and returns the median time in µs.
func (r *raw) p50(d time.Duration) (float64, error) {
	var took []time.Duration
	for begun := time.Now(); time.Since(begun) < d; {
		sent := time.Now()
		if _, err := r.do("EVALSHA", r.sha, "1", fmt.Sprint("raw:", len(took)%1000), "1000000", "86400000000"); err != nil {
			return 0, err
		}
		took = append(took, time.Since(sent))
	}
	slices.Sort(took)
	return float64(took[len(took)/2].Nanoseconds()) / 1e3, nil
}
