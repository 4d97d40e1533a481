package server_test

import (
	"context"
	"fmt"

	"github.com/sluice-mesh/sluice/internal/server"
)

func Example() {
	l, err := server.Listen("127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // it is told to end at once
	fmt.Println(server.New(server.Options{Reflection: true}).Run(ctx, l))
	// Output: <nil>
}
