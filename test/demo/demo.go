package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluice-mesh/sluice/test/stack"
)

type options struct {
	store    string // memory or redis
	extauthz string
	patience time.Duration // 0 leaves every timeout as it is
}

// The ports of envoy/edge-extauthz.yaml.
const (
	edgePort     = 10000
	upstreamPort = 8080
	sluicePort   = 9001
)

const (
	startTime = 30 * time.Second
	stopTime  = 10 * time.Second
)

// A demo is everything that runs.
type demo struct {
	options
	root, dir string
	port      int // where Envoy listens
	upstream  *stack.Upstream
	extauthz  *stack.Extauthz
	parts     []part // in the order of their start
}

type part struct {
	*stack.Process
	stop func(time.Duration) error
}

// start starts everything, or nothing.
func start(ctx context.Context, o options) (*demo, error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	d := &demo{options: o}
	for _, step := range []func(context.Context) error{d.folders, d.startUpstream, d.startExtauthz, d.startEnvoy, d.meet} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, d.stop())
		}
	}
	return d, nil
}

func (d *demo) folders(context.Context) (err error) {
	if d.root, err = stack.Root(); err != nil {
		return err
	}
	d.dir, err = os.MkdirTemp("", "sluice-demo-")
	return err
}

func (d *demo) startUpstream(context.Context) (err error) {
	d.upstream, err = stack.StartUpstream(upstreamPort)
	return err
}

func (d *demo) startExtauthz(ctx context.Context) error {
	args := []string{"--policy", filepath.Join(d.root, "envoy", "policy.yaml"), "--store", d.store}
	if d.store == "redis" {
		url, err := d.startRedis(ctx)
		if err != nil {
			return err
		}
		args = append(args, "--redis-url", url)
	}
	if d.patience > 0 {
		args = append(args, "--store-deadline", d.patience.String())
	}
	var err error
	if d.extauthz, err = stack.StartExtauthz(ctx, d.options.extauthz, sluicePort, args...); err != nil {
		return err
	}
	d.parts = append(d.parts, part{d.extauthz.Process, d.extauthz.Stop})
	return nil
}

func (d *demo) startRedis(ctx context.Context) (url string, err error) {
	path, err := stack.RedisPath()
	if err != nil {
		return "", err
	}
	r, err := stack.StartRedis(ctx, path, d.dir)
	if err != nil {
		return "", err
	}
	d.parts = append(d.parts, part{r.Process, r.Stop})
	return r.URL, nil
}

func (d *demo) startEnvoy(ctx context.Context) error {
	path, err := stack.EnvoyPath()
	if err != nil {
		return err
	}
	port, err := stack.ReservePort(edgePort)
	if err != nil {
		return err
	}
	e, err := stack.StartEnvoy(ctx, stack.EnvoyOptions{
		Path: path, Config: filepath.Join(d.root, "envoy", "edge-extauthz.yaml"), Dir: d.dir,
		Listen:  map[int]*stack.Port{edgePort: port},
		Connect: map[int]int{sluicePort: d.extauthz.Port(), upstreamPort: d.upstream.Port}, Patience: d.patience,
	})
	if err != nil {
		return err
	}
	d.port = port.Number
	d.parts = append(d.parts, part{e.Process, e.Stop})
	return nil
}

// meet waits until Envoy and extauthz have met: before that, a request may pass
// unasked. The path that it asks for is never counted.
func (d *demo) meet(ctx context.Context) error {
	for {
		unasked := d.upstream.Unasked()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url()+"/healthz", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return fmt.Errorf("ask through Envoy: %w", err)
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK && d.upstream.Unasked() == unasked {
			return nil
		}
	}
}

func (d *demo) url() string { return fmt.Sprintf("http://127.0.0.1:%d", d.port) }

// wait shows what the parts say from now on, until ctx ends or one of them
// does: then it returns an error.
func (d *demo) wait(ctx context.Context, out io.Writer) error {
	ended := make(chan string, len(d.parts))
	for _, p := range d.parts {
		go func() {
			p.Output.Follow(ctx, func(line string) { fmt.Fprintf(out, "%s: %s\n", p.Name, line) })
			<-p.Done()
			ended <- p.Name
		}()
	}
	select {
	case name := <-ended:
		return fmt.Errorf("%s ended by itself", name)
	case <-ctx.Done():
		return nil
	}
}

// stop ends everything that runs, the last that was started first.
func (d *demo) stop() error {
	var errs []error
	for i := len(d.parts) - 1; i >= 0; i-- {
		errs = append(errs, d.parts[i].stop(stopTime))
	}
	if d.upstream != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopTime)
		defer cancel()
		errs = append(errs, d.upstream.Stop(ctx))
	}
	if d.dir != "" {
		errs = append(errs, os.RemoveAll(d.dir))
	}
	return errors.Join(errs...)
}

// running names the parts and their processes.
func (d *demo) running() []string {
	names := []string{fmt.Sprintf("upstream on port %d", d.upstream.Port)}
	for _, p := range d.parts {
		names = append(names, fmt.Sprintf("%s (process %d)", p.Name, p.PID()))
	}
	return names
}

func (d *demo) keptIn() string {
	if d.store == "memory" {
		return "its own memory"
	}
	path, _ := stack.RedisPath()
	if strings.HasSuffix(path, "valkey-server") {
		return "a Valkey of its own"
	}
	return "a Redis of its own"
}
