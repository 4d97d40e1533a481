package stack

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// A Process is a program that was started here. Its methods are safe for
// concurrent use.
type Process struct {
	Name string
	// Output is what it printed, on both of its outputs.
	Output Output

	cmd  *exec.Cmd
	done chan struct{}
	err  error // once done
}

// Start starts the program at path. A signal from the keyboard does not reach
// it: whoever starts it calls Stop. Should this process be killed, the kernel
// ends it too, where it can.
func Start(name, path string, args ...string) (*Process, error) {
	return StartCommand(name, exec.Command(path, args...))
}

// StartCommand is Start for a command that was made ready: its folder and its
// variables are taken as they are.
func StartCommand(name string, cmd *exec.Cmd) (*Process, error) {
	p := &Process{Name: name, cmd: cmd, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.Output, &p.Output
	p.cmd.SysProcAttr = childAttributes()
	p.cmd.WaitDelay = 5 * time.Second
	started := make(chan error)
	go func() {
		// The kernel takes the end of the thread that started a child for the
		// end of its parent.
		runtime.LockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			p.Output.close()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed once the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Await waits for a line that contains text, also one printed already, and
// returns it. It is an error if the process ends without, or ctx does.
func (p *Process) Await(ctx context.Context, text string) (string, error) {
	line, err := p.Output.await(ctx, 0, func(line string) bool { return strings.Contains(line, text) })
	if err != nil {
		return "", fmt.Errorf("%s: wait for %q: %w; it said:\n%s", p.Name, text, err, p.Output.String())
	}
	return line, nil
}

// Stop ends the process and waits for that: SIGTERM, and after grace SIGKILL.
// The error says that it had to be killed, or ended with one of its own.
// Stopping it again gives the same answer.
func (p *Process) Stop(grace time.Duration) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.done:
		return p.Err()
	case <-time.After(grace):
	}
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return fmt.Errorf("%s did not end within %v of SIGTERM", p.Name, grace)
}

// Signal sends s to the process, unless it has ended.
func (p *Process) Signal(s syscall.Signal) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	if err := syscall.Kill(p.PID(), s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("%s: send %v: %w", p.Name, s, err)
	}
	return nil
}

// Err waits for the end of the process and says how it ended: nil for exit 0.
func (p *Process) Err() error {
	<-p.done
	if p.err != nil {
		return fmt.Errorf("%s ended: %w", p.Name, p.err)
	}
	return nil
}
