package main

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/sluice-mesh/sluice/internal/bench"
	"github.com/sluice-mesh/sluice/test/servers"
)

// The floor with a Redis makes one EVALSHA for each request of either door,
// which takes a token, and fails where there is no Redis.
func TestChargingFloor(t *testing.T) {
	t.Parallel()
	redis := servers.Start(t, servers.Redis, servers.Options{})
	addr := serve(t, newFloor(redis.Addr))
	const requests = 300
	for i, r := range []bench.Request{user, page} {
		report := ask(t, addr, r, requests)
		if got := report.Answers[bench.OK]; got != requests {
			t.Fatalf("%d of %d requests are answered OK, want all: %s", got, requests, report.FirstError)
		}
		if got, want := scripts(t, redis), fmt.Sprint(requests*(i+1)); got != want {
			t.Errorf("Redis ran %s scripts, want %s, one a request", got, want)
		}
	}
	if n, err := strconv.Atoi(redis.Do(t, "DBSIZE")); err != nil || n < requests {
		t.Errorf("%d requests charged %d buckets, %v, want nearly one each of %d", 2*requests, n, err, manyKeys)
	}
	redis.Stop()
	if got := ask(t, addr, user, 3).Answers[bench.OK]; got != 0 {
		t.Errorf("without a Redis %d of 3 requests are answered OK, want none", got)
	}
}

// scripts is how many EVALSHA a Redis says that it ran.
func scripts(t *testing.T, s *servers.Server) string {
	t.Helper()
	_, stat, _ := strings.Cut(s.Do(t, "INFO", "commandstats"), "cmdstat_evalsha:calls=")
	calls, _, _ := strings.Cut(stat, ",")
	return calls
}

func serve(t *testing.T, s *grpc.Server) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-ended; err != nil {
			t.Errorf("Serve = %v, want no error", err)
		}
	})
	return l.Addr().String()
}

func ask(t *testing.T, addr string, r bench.Request, requests int64) bench.Report {
	t.Helper()
	client, err := bench.Dial(bench.Target{Addr: addr}, r)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	report, err := bench.Run(t.Context(), client, bench.Options{Callers: 3, Requests: requests, Timeout: 30 * time.Second, Keys: manyKeys})
	if err != nil {
		t.Fatal(err)
	}
	return report
}
