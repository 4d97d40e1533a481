package main

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// asMain in the environment has the test binary be extauthz.
const asMain = "EXTAUTHZ_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// startApart runs serve as a process of its own, for signals.
func startApart(t *testing.T, args ...string) (*process, *exec.Cmd) {
	t.Helper()
	p := &process{log: newJournal(), code: make(chan int, 1)}
	args = append([]string{"serve", "--log-format", "json", "--grpc-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0"}, args...)
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = []string{asMain + "=1"}
	cmd.Stderr = p.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // the exit code says it
		p.code <- cmd.ProcessState.ExitCode()
	}()
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		<-ended
	})
	p.connect(t)
	return p, cmd
}

func send(t *testing.T, cmd *exec.Cmd, s os.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(s); err != nil {
		t.Fatalf("signal %v: %v", s, err)
	}
}

func TestSignalsDrain(t *testing.T) {
	t.Parallel()
	for _, s := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		p, cmd := startApart(t, "--policy", policyFile(t, limited(2)))
		send(t, cmd, s)
		if got := p.exit(t); got != exitOK {
			t.Errorf("exit code = %d after %v, want 0", got, s)
		}
		p.log.await(t, `"msg":"stopped"`, 1)
	}
}

// Who cannot wait for the drain sends the signal twice.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	p, cmd := startApart(t, "--policy", policyFile(t, limited(2)), "--drain-delay", "1h")
	send(t, cmd, syscall.SIGTERM)
	p.log.await(t, `"msg":"draining"`, 1)
	// The first signal's handler may still be there for a moment.
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-p.code:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Errorf("serve has not ended %v after the second signal", patience)
}

// SIGHUP has the policy read again, changed or not.
func TestHangup(t *testing.T) {
	t.Parallel()
	p, cmd := startApart(t, "--policy", policyFile(t, limited(2)))
	for i := range 2 {
		send(t, cmd, syscall.SIGHUP)
		p.log.await(t, `"msg":"policy loaded"`, i+2)
	}
	got, err := healthv1.NewHealthClient(p.conn).Check(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil || got.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("health.Check = %v, %v after SIGHUP, want SERVING", got, err)
	}
}
