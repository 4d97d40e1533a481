// Upstream is a service to stand behind Envoy while trying an example: it
// answers 200 to everything on 127.0.0.1:8080, and says what it was asked.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/sluice-mesh/sluice/test/stack"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "upstream:", err)
		os.Exit(1)
	}
}

// port is the one that the published configurations ask.
const port = 8080

func run(ctx context.Context) error {
	u, err := stack.StartUpstream(port)
	if err != nil {
		return err
	}
	if u.Port != port {
		err := fmt.Errorf("port %d is taken, and the examples ask no other: end what has it", port)
		return errors.Join(err, u.Stop(context.WithoutCancel(ctx)))
	}
	fmt.Printf("listening on http://127.0.0.1:%d\n", u.Port)
	<-ctx.Done()
	return u.Stop(context.WithoutCancel(ctx))
}
