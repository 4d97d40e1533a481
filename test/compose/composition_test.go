//go:build compose

package compose_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// patience bounds every wait for an event.
const patience = 2 * time.Minute

// project names what belongs to these tests on the engine.
const project = "sluice-e2e"

// A composition is docker-compose.yml, with a folder in place of compose/.
type composition struct {
	root, dir string
	compose   []string // the command: Compose 2, or 1
	environ   []string
	envoy     string // host:port
	prom      string
}

func newComposition(root, dir string) (*composition, error) {
	c := &composition{root: root, dir: dir, compose: []string{"docker", "compose"}}
	if own := os.Getenv("COMPOSE"); own != "" {
		c.compose = strings.Fields(own)
	} else if exec.Command("docker", "compose", "version").Run() != nil {
		c.compose = []string{"docker-compose"}
	}
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	c.envoy, c.prom = "127.0.0.1:"+ports[0], "127.0.0.1:"+ports[1]
	c.environ = append(os.Environ(), "COMPOSE_PROJECT_NAME="+project, "DOCKER_BUILDKIT=0", "SLUICE_COMPOSE_DIR="+dir, "SLUICE_STORE_DEADLINE=2s",
		"SLUICE_PORT="+ports[0], "SLUICE_PROMETHEUS_PORT="+ports[1], "SLUICE_GRAFANA_PORT="+ports[2])
	return c, nil
}

// freePorts finds ports of loopback that nobody has.
func freePorts(n int) ([]string, error) {
	var ports []string
	for range n {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}

// start builds and starts all but Grafana, whose image cannot be made of
// what is on a machine, and waits until Envoy lets a request through.
func (c *composition) start() error {
	c.down() // what a run that was killed has left
	if _, err := c.run("build", "extauthz"); err != nil {
		return err
	}
	if _, err := c.run("--profile", "metrics", "up", "-d", "envoy", "prometheus"); err != nil {
		return err
	}
	return c.healthy(map[string]int{"envoy": 1, "extauthz": 2, "redis": 1, "upstream": 1, "prometheus": 1})
}

// healthy waits until so many containers of each service are.
func (c *composition) healthy(want map[string]int) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		out, err := c.docker("ps", "--filter", "label=com.docker.compose.project="+project, "--filter", "health=healthy",
			"--format", `{{.Label "com.docker.compose.service"}}`)
		if err != nil {
			return err
		}
		missing := false
		for service, n := range want {
			missing = missing || strings.Count("\n"+out+"\n", "\n"+service+"\n") < 1 || count(strings.Fields(out), service) < n
		}
		if !missing {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("healthy after %v are %q, want %v:\n%s", patience, strings.Fields(out), want, c.logs())
		}
	}
}

func count(words []string, word string) (n int) {
	for _, w := range words {
		if w == word {
			n++
		}
	}
	return n
}

func (c *composition) down() {
	if _, err := c.run("--profile", "metrics", "down", "-v", "-t", "2", "--remove-orphans"); err != nil {
		fmt.Fprintln(os.Stderr, "compose:", err)
	}
}

func (c *composition) logs() string {
	out, err := c.run("--profile", "metrics", "logs", "--tail", "40", "--no-color")
	if err != nil {
		return err.Error()
	}
	return out
}

// run runs a command of compose.
func (c *composition) run(args ...string) (string, error) {
	all := append(c.compose[1:len(c.compose):len(c.compose)], "-f", filepath.Join(c.root, "docker-compose.yml"))
	return c.command(c.compose[0], append(all, args...)...)
}

func (c *composition) docker(args ...string) (string, error) { return c.command("docker", args...) }

func (c *composition) command(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Dir = c.environ, c.root
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), errors.Join(err, ctx.Err()), stderr.String())
	}
	return strings.TrimSpace(stdout.String()), err
}

// ask is run, and docker below, for tests.
func (c *composition) ask(t *testing.T, args ...string) string {
	t.Helper()
	out, err := c.run(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (c *composition) engine(t *testing.T, args ...string) string {
	t.Helper()
	out, err := c.docker(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// containers are the ids of a service.
func (c *composition) containers(t *testing.T, service string) []string {
	t.Helper()
	return strings.Fields(c.engine(t, "ps", "-a", "-q", "--filter", "label=com.docker.compose.project="+project,
		"--filter", "label=com.docker.compose.service="+service))
}

// await waits until the services are healthy again.
func (c *composition) await(t *testing.T, want map[string]int) {
	t.Helper()
	if err := c.healthy(want); err != nil {
		t.Fatal(err)
	}
}

// eventually waits until it is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not after %v: %s", patience, what)
		}
	}
}
