package cluster

import (
	"context"
	"fmt"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"sort"
	"strings"

	"github.com/sluice-mesh/sluice/test/stack"
)

// A startError says why a container could not be started.
type startError struct {
	reason string // as kubelet calls it
	err    error
}

func (e *startError) Error() string { return e.err.Error() }

// start starts the process of a container.
func (w *worker) start(ctx context.Context, c container) (*stack.Process, *startError) {
	argv, program, err := w.node.program(c)
	if err != nil {
		return nil, &startError{"ErrImagePull", err}
	}
	env, err := w.environment(ctx, c)
	if err != nil {
		return nil, &startError{"CreateContainerConfigError", err}
	}
	here := w.here(ctx, c)
	args := []string{}
	for _, arg := range argv {
		args = append(args, here(expand(arg, env)))
	}
	if program.Args != nil {
		args = program.Args(loopback(w.ip), args)
	}
	cmd := exec.Command(program.Path, args...)
	cmd.Dir = w.dir
	cmd.Env = []string{"HOSTNAME=" + w.pod.Metadata.Name}
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+here(value))
	}
	sort.Strings(cmd.Env)
	p, err := stack.StartCommand(c.Name, cmd)
	if err != nil {
		return nil, &startError{"RunContainerError", err}
	}
	w.mu.Lock()
	w.processes = append(w.processes, p)
	w.mu.Unlock()
	return p, nil
}

// program returns what stands for a container's program, and its arguments.
func (n *Node) program(c container) (args []string, p Program, err error) {
	name := c.Image
	if digest := strings.IndexByte(name, '@'); digest > 0 {
		name = name[:digest]
	}
	if tag := strings.LastIndexByte(name, ':'); tag > strings.LastIndexByte(name, '/') {
		name = name[:tag]
	}
	image, ok := n.images[name]
	if !ok {
		return nil, p, fmt.Errorf("no image %s", name)
	}
	argv := append([]string{""}, c.Args...)
	if len(c.Command) > 0 {
		argv = append(append([]string{}, c.Command...), c.Args...)
	}
	command := argv[0]
	if command != "" {
		command = path.Base(command)
	}
	p, ok = image[command]
	if !ok {
		return nil, p, fmt.Errorf("image %s has no command %q", name, argv[0])
	}
	return argv[1:], p, nil
}

var (
	reference = regexp.MustCompile(`\$\$|\$\([A-Za-z_][A-Za-z0-9_.-]*\)`)
	listening = regexp.MustCompile(`(^|[=\s,])(?:0\.0\.0\.0|\[::\]|127\.0\.0\.1|localhost)?(:\d{2,5})(?:$|[\s,])`)
	named     = regexp.MustCompile(`([a-z0-9](?:[-a-z0-9]*[a-z0-9])?)((?:\.[-a-z0-9]+)*):(\d{2,5})`)
)

// expand puts variables in place of $(NAME), as kubelet does: an unknown one
// stays, $$ is one dollar.
func expand(text string, env map[string]string) string {
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		if found == "$$" {
			return "$"
		}
		if value, ok := env[found[2:len(found)-1]]; ok {
			return value
		}
		return found
	})
}

// here returns what rewrites a text for a container: paths of its volumes and
// addresses of the cluster become those of this machine.
func (w *worker) here(ctx context.Context, c container) func(string) string {
	mounts := append([]mount{}, c.VolumeMounts...)
	sort.Slice(mounts, func(i, j int) bool { return len(mounts[i].MountPath) > len(mounts[j].MountPath) })
	return func(text string) string {
		for _, m := range mounts {
			at := regexp.MustCompile(`(^|[=:,\s"'])` + regexp.QuoteMeta(path.Clean(m.MountPath)) + `(/|$|[:,\s"'])`)
			text = at.ReplaceAllString(text, "${1}"+filepath.Join(w.volumeDir(m.Name), m.SubPath)+"${2}")
		}
		text = listening.ReplaceAllString(text, "${1}"+loopback(w.ip)+"${2}")
		return named.ReplaceAllStringFunc(text, func(found string) string { return w.resolve(ctx, found) })
	}
}

// resolve puts the address of a Service in place of its name. What is no
// Service's name stays as it is.
func (w *worker) resolve(ctx context.Context, text string) string {
	parts := named.FindStringSubmatch(text)
	labels := strings.Split(strings.TrimPrefix(parts[2], "."), ".")
	namespace := w.pod.Metadata.Namespace
	if labels[0] != "" {
		namespace = labels[0]
	}
	if len(labels) > 1 && labels[1] != "svc" {
		return text
	}
	at, err := w.node.net.service(ctx, namespace, parts[1], parts[3])
	if err != nil {
		if !NotFound(err) {
			w.say("resolve " + text + ": " + err.Error())
		}
		return text
	}
	return at
}
