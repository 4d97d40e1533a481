package bench_test

import (
	"context"
	"fmt"
	"net"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"

	"github.com/sluice-mesh/sluice/internal/bench"
)

func Example() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	server := grpc.NewServer()
	rlsv3.RegisterRateLimitServiceServer(server, &recorder{})
	go server.Serve(l) //nolint:errcheck // it is stopped
	defer server.Stop()

	client, err := bench.Dial(
		bench.Target{Addr: l.Addr().String(), Connections: 4},
		bench.RLS{Domain: "edge", Descriptors: [][]bench.Entry{{{"user", "u{key}"}}}},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	report, err := bench.Run(context.Background(), client, bench.Options{Callers: 32, Requests: 1000, Keys: 100, Timeout: time.Minute})
	fmt.Println(report.Requests, report.Answers, err)
	// Output: 1000 map[ok:1000] <nil>
}
