package stack

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// Envoy is a running Envoy.
type Envoy struct {
	*Process
	held []*Port
}

// EnvoyOptions say which Envoy to start. All but Patience are required.
type EnvoyOptions struct {
	Path   string // of the program
	Config string // file, as published
	Dir    string // where the configuration that really runs is written
	// Listen and Connect say which port to use for each one in the file: to
	// listen on, and to connect to. They must name every port in the file.
	Listen  map[int]*Port
	Connect map[int]int
	// Patience, unless 0, is used for every timeout of a question to Sluice,
	// for machines that are busy with other things.
	Patience time.Duration
}

// StartEnvoy starts Envoy and waits until it listens. The ports in Listen are
// its own from then on: Stop releases them.
func StartEnvoy(ctx context.Context, o EnvoyOptions) (*Envoy, error) {
	config, err := o.rewrite()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(o.Dir, "envoy.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	p, err := Start("envoy", o.Path, "-c", file, "--disable-hot-restart", "--concurrency", "1", "-l", "warn")
	if err != nil {
		return nil, err
	}
	e := &Envoy{Process: p}
	for _, port := range o.Listen {
		e.held = append(e.held, port)
		if err := p.listens(ctx, port.Number); err != nil {
			_ = e.Stop(time.Second)
			return nil, err
		}
	}
	return e, nil
}

// Stop ends Envoy as Process.Stop does, and gives its ports up.
func (e *Envoy) Stop(grace time.Duration) error {
	err := e.Process.Stop(grace)
	for _, p := range e.held {
		_ = p.Release()
	}
	return err
}

// listens waits until something accepts connections on port.
func (p *Process) listens(ctx context.Context, port int) error {
	for {
		c, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return c.Close()
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-p.done:
			return fmt.Errorf("%s ended before it listened; it said:\n%s", p.Name, p.Output.String())
		case <-ctx.Done():
			return fmt.Errorf("%s: wait until it listens: %w; it said:\n%s", p.Name, ctx.Err(), p.Output.String())
		}
	}
}

var (
	portValue = regexp.MustCompile(`\bport_value: \d+`)
	timeout   = regexp.MustCompile(`\btimeout: [0-9.]+s`) // and not connect_timeout
)

// rewrite is the published configuration on the ports that were free. It
// changes nothing else.
func (o EnvoyOptions) rewrite() (string, error) {
	b, err := os.ReadFile(o.Config)
	if err != nil {
		return "", err
	}
	ports, used := o.ports(), map[int]bool{}
	text := portValue.ReplaceAllStringFunc(string(b), func(found string) string {
		n, _ := strconv.Atoi(found[len("port_value: "):])
		used[n] = true
		return fmt.Sprintf("port_value: %d", ports[n])
	})
	for n := range used {
		if ports[n] == 0 {
			return "", fmt.Errorf("%s: no port is given for its port %d", o.Config, n)
		}
	}
	for n := range ports {
		if !used[n] {
			return "", fmt.Errorf("%s: it has no port %d", o.Config, n)
		}
	}
	if o.Patience > 0 {
		text = timeout.ReplaceAllString(text, fmt.Sprintf("timeout: %ds", int(o.Patience.Seconds())))
	}
	return text, nil
}

func (o EnvoyOptions) ports() map[int]int {
	ports := map[int]int{}
	for n, p := range o.Listen {
		ports[n] = p.Number
	}
	for n, p := range o.Connect {
		ports[n] = p
	}
	return ports
}
