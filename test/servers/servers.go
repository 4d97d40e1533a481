// Package servers starts real Redis and Valkey servers for tests, on loopback
// and with nothing kept on disk.
//
// A binary is taken from the environment (REDIS_SERVER, VALKEY_SERVER), else
// from below .tools at the top of the repository, else from the PATH. Where
// there is none the test is skipped; with CI set in the environment it fails.
package servers

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// A Kind is a make of server.
type Kind struct {
	// Name is the kind's, for the name of a subtest.
	Name   string
	binary string
	env    string
}

// The kinds.
var (
	Redis  = Kind{"redis", "redis-server", "REDIS_SERVER"}
	Valkey = Kind{"valkey", "valkey-server", "VALKEY_SERVER"}
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Redis, Valkey} }

// Options say how a server starts. The zero Options are a server on a free
// port of 127.0.0.1, without a password.
type Options struct {
	// Password is what clients must give (requirepass).
	Password string
	// Socket has the server listen on a unix socket instead of a port.
	Socket bool
	// Certificates has the server speak TLS only, to those that show one of
	// them.
	Certificates *Certificates
	// Replicas is, of a Cluster, how many each primary has.
	Replicas int
	// Args are further arguments, such as "--maxmemory", "10mb".
	Args []string
	// Env are variables, as KEY=VALUE, beside those of the test.
	Env []string
}

// A Server is a running server. It ends with its test.
type Server struct {
	// Addr is host:port, or the path of the socket.
	Addr string

	kind    Kind
	path    string
	options Options
	dir     string
	conf    string   // "" for none
	more    []string // arguments
	bus     string   // of a node of a cluster, the port for the others
	cmd     *exec.Cmd
	exited  <-chan struct{}
}

// Start starts a server of kind k and waits until it answers.
func Start(t testing.TB, k Kind, o Options) *Server {
	t.Helper()
	if !o.Socket {
		return startFree(t, k, o, func(*Server) []string { return nil })
	}
	s := newServer(t, k, o)
	s.Addr = filepath.Join(s.dir, "s")
	s.mustStart(t)
	return s
}

func newServer(t testing.TB, k Kind, o Options) *Server {
	t.Helper()
	s := &Server{kind: k, path: k.find(t), options: o, dir: folder(t)}
	t.Cleanup(s.Kill)
	return s
}

// startFree starts a server on a free port. more returns further arguments for
// each try: between the choice of a port and its use another may take it.
func startFree(t testing.TB, k Kind, o Options, more func(*Server) []string) *Server {
	t.Helper()
	s := newServer(t, k, o)
	for try := 1; ; try++ {
		s.Addr = freeAddr(t)
		s.more = more(s)
		err := s.start()
		if err == nil {
			return s
		}
		if try == 5 || !errors.Is(err, errEnded) {
			t.Fatalf("start %s: %v", s.path, err)
		}
	}
}

// Options returns what s was started with.
func (s *Server) Options() Options { return s.options }

// Restart starts s again at the same address, after Stop or Kill. It holds
// nothing then.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.mustStart(t)
}

// Launch is Restart that does not wait until s answers.
func (s *Server) Launch(t testing.TB) {
	t.Helper()
	if err := s.launch(); err != nil {
		t.Fatalf("start %s: %v", s.path, err)
	}
}

// URL returns where s is, as redis://, rediss:// or unix://, with its password.
func (s *Server) URL() string {
	scheme, user, addr := s.parts()
	return scheme + "://" + user + addr
}

func (s *Server) parts() (scheme, user, addr string) {
	scheme = "redis"
	switch {
	case s.options.Socket:
		scheme = "unix"
	case s.options.Certificates != nil:
		scheme = "rediss"
	}
	if s.options.Password != "" {
		user = ":" + s.options.Password + "@"
	}
	return scheme, user, s.Addr
}

// Stop has the server shut down in order, and waits for its end.
func (s *Server) Stop() { s.end(syscall.SIGTERM) }

// Kill ends the server at once, paused or not.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Pause keeps the server from running: connections are taken, and nothing is
// answered.
func (s *Server) Pause(t testing.TB) {
	t.Helper()
	s.signal(t, syscall.SIGSTOP)
}

// Resume undoes Pause.
func (s *Server) Resume(t testing.TB) {
	t.Helper()
	s.signal(t, syscall.SIGCONT)
}

func (s *Server) signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatalf("signal %v to %s: %v", sig, s.kind.Name, err)
	}
}

func (s *Server) end(sig syscall.Signal) {
	if s.cmd == nil {
		return
	}
	// One that has ended by itself is as good.
	_ = s.cmd.Process.Signal(sig)
	<-s.exited
	s.cmd = nil
}

func (s *Server) mustStart(t testing.TB) {
	t.Helper()
	if err := s.start(); err != nil {
		t.Fatalf("start %s: %v", s.path, err)
	}
}

func (s *Server) start() error {
	if err := s.launch(); err != nil {
		return err
	}
	if err := s.await(); err != nil {
		s.Kill()
		return fmt.Errorf("%w; its log:\n%s", err, s.log())
	}
	return nil
}

func (s *Server) launch() error {
	cmd := exec.Command(s.path, s.args(s.logPath())...)
	cmd.Env = append(os.Environ(), s.options.Env...)
	exited, err := run(cmd)
	if err != nil {
		return err
	}
	s.cmd, s.exited = cmd, exited
	return nil
}

func (s *Server) logPath() string { return filepath.Join(s.dir, "log") }

func (s *Server) log() []byte {
	text, _ := os.ReadFile(s.logPath())
	return text
}

// run starts cmd and returns a channel that is closed at its end.
func run(cmd *exec.Cmd) (exited chan struct{}, err error) {
	endWithUs(cmd)
	exited = make(chan struct{})
	started := make(chan error)
	go func() {
		defer close(exited)
		// The server ends with the thread that started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // the log says why
		}
	}()
	return exited, <-started
}

func (s *Server) args(log string) []string {
	var args []string
	if s.conf != "" {
		args = append(args, s.conf)
	}
	args = append(args, "--save", "", "--appendonly", "no", "--dir", s.dir, "--logfile", log)
	host, port, _ := net.SplitHostPort(s.Addr)
	switch c := s.options.Certificates; {
	case s.options.Socket:
		args = append(args, "--port", "0", "--unixsocket", s.Addr)
	case c != nil:
		args = append(args, "--bind", host, "--port", "0", "--tls-port", port,
			"--tls-ca-cert-file", c.CAFile, "--tls-cert-file", c.CertFile, "--tls-key-file", c.KeyFile)
	default:
		args = append(args, "--bind", host, "--port", port)
	}
	if s.options.Password != "" {
		args = append(args, "--requirepass", s.options.Password)
	}
	return append(append(args, s.more...), s.options.Args...)
}

var errEnded = errors.New("it ended")

// await returns when the server answers, or with an error when it has ended or
// does not answer for long.
func (s *Server) await() error {
	timeout := time.After(30 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-s.exited:
			return errEnded
		case <-timeout:
			return errors.New("it did not answer within 30s")
		case <-tick.C:
			if s.answers() {
				return nil
			}
		}
	}
}

// answers says that PING is answered by PONG.
func (s *Server) answers() bool {
	text, err := s.Try("PING")
	return err == nil && text == "PONG"
}

// folder is a folder of its own for a server. Its path is short, since that of
// a socket may not be long.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "srv")
	if err != nil {
		t.Fatalf("MkdirTemp: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func freeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen on a free port: %v", err)
	}
	defer l.Close()
	return l.Addr().String()
}

// find returns the path of k's binary, or ends the test.
func (k Kind) find(t testing.TB) string {
	t.Helper()
	if path := os.Getenv(k.env); path != "" {
		return path
	}
	if path := k.inTools(); path != "" {
		return path
	}
	path, err := exec.LookPath(k.binary)
	if err == nil {
		return path
	}
	miss := fmt.Sprintf("no %s in .tools nor in the PATH; %s can say where one is", k.binary, k.env)
	if os.Getenv("CI") != "" {
		t.Fatal(miss)
	}
	t.Skip(miss)
	return ""
}

// inTools returns the path of k's binary in the .tools beside the nearest
// go.mod, or "".
func (k Kind) inTools() string {
	top, err := os.Getwd()
	for err == nil && !exists(filepath.Join(top, "go.mod")) && top != filepath.Dir(top) {
		top = filepath.Dir(top)
	}
	path := filepath.Join(top, ".tools", k.binary)
	if !exists(path) {
		return ""
	}
	return path
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
