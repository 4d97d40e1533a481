package cluster

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sluice-mesh/sluice/test/stack"
)

// A worker runs one pod.
type worker struct {
	node  *Node
	pod   pod
	dir   string
	ip    string // in the cluster
	began time.Time
	end   context.CancelFunc // the pod is to end
	done  chan struct{}      // and has

	reporting   sync.Mutex
	mu          sync.Mutex
	states      map[string]*state // of containers, by name
	initialized bool
	processes   []*stack.Process // all that ran
	said        []string         // by the node, of this pod
	conditions  map[string]condition
}

// A state is what is told of a container.
type state struct {
	waiting, message string // why it does not run; "" if it does, or has ended
	ended            *ending
	last             *ending // before it was started again
	started, ready   bool
	restarts         int
	since            time.Time
}

// An ending is how a container ended.
type ending struct {
	code    int
	message string
	at      time.Time
}

// again is how long a container that ended is left alone, and how often files
// that were missing are looked for.
const again = 500 * time.Millisecond

func (w *worker) run(ctx context.Context) {
	for _, c := range append(w.pod.Spec.InitContainers, w.pod.Spec.Containers...) {
		w.states[c.Name] = &state{waiting: "PodInitializing"}
	}
	w.report(ctx)
	if !w.mountAll(ctx) {
		return
	}
	for _, c := range w.pod.Spec.InitContainers {
		if !w.runInit(ctx, c) {
			w.report(ctx)
			return
		}
	}
	w.mu.Lock()
	w.initialized = true
	w.mu.Unlock()
	w.report(ctx)
	files, stop := context.WithCancel(ctx)
	defer stop()
	var containers sync.WaitGroup
	for _, c := range w.pod.Spec.Containers {
		containers.Go(func() { w.keep(ctx, c) })
	}
	var following sync.WaitGroup
	following.Go(func() { w.followFiles(files) })
	containers.Wait()
	stop()
	following.Wait()
	w.report(context.WithoutCancel(ctx))
}

// mountAll waits until the files of all volumes are there. It says false when
// the pod is to end before.
func (w *worker) mountAll(ctx context.Context) bool {
	for ctx.Err() == nil {
		err := w.mount(ctx)
		if err == nil {
			return true
		}
		w.say(err.Error())
		w.waitAll("ContainerCreating", "MountVolume.SetUp failed: "+err.Error())
		w.report(ctx)
		wait(ctx, again)
	}
	return false
}

// waitAll says why no container of the pod runs.
func (w *worker) waitAll(reason, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.states {
		s.waiting, s.message = reason, message
	}
}

// runInit runs an init container until it succeeds. It says false when the pod
// is to end before, or has failed.
func (w *worker) runInit(ctx context.Context, c container) bool {
	for ctx.Err() == nil {
		code := w.once(ctx, c, nil)
		w.report(ctx)
		if code == 0 {
			return true
		}
		if w.pod.Spec.RestartPolicy == "Never" {
			return false
		}
		w.backOff(ctx, c)
	}
	return false
}

// keep runs a container again and again, as the pod's restart policy says,
// until the pod is to end.
func (w *worker) keep(ctx context.Context, c container) {
	for ctx.Err() == nil {
		code := w.once(ctx, c, w.probe)
		if w.pod.Spec.RestartPolicy == "Never" || w.pod.Spec.RestartPolicy == "OnFailure" && code == 0 {
			return
		}
		w.backOff(ctx, c)
	}
}

// backOff waits before the container is run again.
func (w *worker) backOff(ctx context.Context, c container) {
	if ctx.Err() != nil {
		return
	}
	w.change(ctx, c, func(s *state) {
		if s.ended != nil {
			s.last, s.ended = s.ended, nil
			s.restarts++
			s.waiting, s.message = "CrashLoopBackOff", "back-off restarting failed container "+c.Name
		}
	})
	wait(ctx, again)
}

// once runs a container until it ends and returns its exit code, -1 for one
// that could not be started. Meanwhile it does with the process what besides
// says.
func (w *worker) once(ctx context.Context, c container, besides func(context.Context, container, *stack.Process)) int {
	p, err := w.start(ctx, c)
	if err != nil {
		w.say(c.Name + ": " + err.reason + ": " + err.Error())
		w.change(ctx, c, func(s *state) { s.waiting, s.message = err.reason, err.Error() })
		return -1
	}
	w.change(ctx, c, func(s *state) { *s = state{last: s.last, restarts: s.restarts, since: time.Now()} })
	probing, stop := context.WithCancel(ctx)
	defer stop()
	var probes sync.WaitGroup
	if besides != nil {
		probes.Go(func() { besides(probing, c, p) })
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		w.terminate(c, p)
	}
	stop()
	probes.Wait()
	end := ending{code: exitCode(p.Err()), at: time.Now()}
	if c.TerminationMessagePolicy == "FallbackToLogsOnError" && end.code != 0 {
		end.message = tail(p.Output.String(), 2048)
	}
	w.change(ctx, c, func(s *state) { s.ended, s.ready, s.started = &end, false, false })
	return end.code
}

// terminate ends a process as the pod wants it to.
func (w *worker) terminate(c container, p *stack.Process) {
	grace := time.Duration(w.pod.Spec.TerminationGracePeriodSeconds) * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if h := c.Lifecycle.PreStop; h != nil {
		// Whatever it says, the container ends.
		_ = w.handle(ctx, c, *h)
	}
	deadline, _ := ctx.Deadline()
	_ = p.Stop(max(time.Until(deadline), 0))
}

// change changes what is told of a container, and tells it.
func (w *worker) change(ctx context.Context, c container, do func(*state)) {
	w.mu.Lock()
	before := *w.states[c.Name]
	do(w.states[c.Name])
	after := *w.states[c.Name]
	w.mu.Unlock()
	if before != after {
		w.report(ctx)
	}
}

func (w *worker) output() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b strings.Builder
	for _, p := range w.processes {
		fmt.Fprintf(&b, "%s: %s\n", p.Name, p.Output.String())
	}
	for _, line := range w.said {
		fmt.Fprintf(&b, "node: %s\n", line)
	}
	return b.String()
}

// say keeps what the node has to say of the pod.
func (w *worker) say(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.said); n == 0 || w.said[n-1] != line {
		w.said = append(w.said, line)
	}
}

// tail returns the last bytes of text, no more than n.
func tail(text string, n int) string { return text[max(0, len(text)-n):] }
