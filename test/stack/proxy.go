package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// ProxyPath finds a proxy that is installed on the machine: nginx or caddy.
// The error is ErrNoPart where there is none.
func ProxyPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		path = filepath.Join("/usr/sbin", name) // in PATH of root alone
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%s (hack/deps installs it) %w", name, ErrNoPart)
		}
	}
	return path, nil
}

// ProxyOptions say which nginx or Caddy to start. All are required.
type ProxyOptions struct {
	Path   string // of the program
	Config string // as published
	Dir    string // where the configuration that really runs is written, and all else that it writes
	// Listen is the port in Config that it listens on, and Ports says which
	// one to use for each in Config, that one too.
	Listen int
	Ports  map[int]int
	// Patience is used for every timeout of a question to Sluice.
	Patience time.Duration
}

// StartNginx starts nginx and waits until it listens.
func StartNginx(ctx context.Context, o ProxyOptions) (*Process, error) {
	file, err := o.write(func(text string) string {
		// So that the port may be one that is held.
		return strings.ReplaceAll(text, fmt.Sprintf("listen 127.0.0.1:%d;", o.Ports[o.Listen]), fmt.Sprintf("listen 127.0.0.1:%d reuseport;", o.Ports[o.Listen]))
	})
	if err != nil {
		return nil, err
	}
	return o.start(ctx, "nginx", o.Path, "-e", "stderr", "-g", "master_process off;", "-p", o.Dir, "-c", file)
}

// StartCaddy starts Caddy and waits until it listens.
func StartCaddy(ctx context.Context, o ProxyOptions) (*Process, error) {
	file, err := o.write(func(text string) string { return text })
	if err != nil {
		return nil, err
	}
	return o.start(ctx, "caddy", "/usr/bin/env", "XDG_CONFIG_HOME="+o.Dir, "XDG_DATA_HOME="+o.Dir,
		o.Path, "run", "--config", file, "--adapter", "caddyfile")
}

func (o ProxyOptions) start(ctx context.Context, name, path string, args ...string) (*Process, error) {
	p, err := Start(name, path, args...)
	if err != nil {
		return nil, err
	}
	if err := p.listens(ctx, o.Ports[o.Listen]); err != nil {
		return nil, errors.Join(err, p.Stop(time.Second))
	}
	return p, nil
}

var (
	proxyPort    = regexp.MustCompile(`(127\.0\.0\.1|http://):(\d+)\b`)
	proxyTimeout = regexp.MustCompile(`\b250ms\b`)
)

// write writes the configuration on the ports that are free.
func (o ProxyOptions) write(edit func(string) string) (string, error) {
	var missing error
	text := proxyPort.ReplaceAllStringFunc(o.Config, func(found string) string {
		host, port := found[:strings.LastIndexByte(found, ':')], found[strings.LastIndexByte(found, ':')+1:]
		n, _ := strconv.Atoi(port)
		if o.Ports[n] == 0 {
			missing = fmt.Errorf("no port is given for port %d", n)
		}
		return fmt.Sprintf("%s:%d", host, o.Ports[n])
	})
	if missing != nil {
		return "", missing
	}
	text = edit(proxyTimeout.ReplaceAllString(text, fmt.Sprintf("%ds", int(o.Patience.Seconds()))))
	file := filepath.Join(o.Dir, "config")
	return file, os.WriteFile(file, []byte(text), 0o600)
}
