package main

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluice-mesh/sluice/test/resp"
)

// bucketScript is about the least that a script can do which keeps a bucket.
//
//go:embed bucket.lua
var bucketScript string

// A raw runs bucketScript without a client library in between.
type raw struct {
	*resp.Conn
	sha string
}

func dialRaw(addr string) (*raw, error) {
	conn, err := resp.Dial(addr)
	if err != nil {
		return nil, err
	}
	sha, err := conn.Do("SCRIPT", "LOAD", bucketScript)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &raw{conn, sha}, nil
}

// take takes from one of as many buckets as the servers are asked about.
func (r *raw) take() error {
	_, err := r.Do("EVALSHA", r.sha, "1", fmt.Sprint("raw:", rand.IntN(manyKeys)), "1000000", "86400000000")
	return err
}

// p50 takes again and again, and returns the median time in µs.
func (r *raw) p50(d time.Duration) (float64, error) {
	var took []time.Duration
	for begun := time.Now(); time.Since(begun) < d; {
		sent := time.Now()
		if err := r.take(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(sent))
	}
	slices.Sort(took)
	return float64(took[len(took)/2].Nanoseconds()) / 1e3, nil
}
