package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// Listen listens at addr: host:port, or unix:PATH. A socket that a process
// left behind which is no more is taken over; one that somebody listens at is
// an address in use.
func Listen(addr string) (net.Listener, error) {
	path, isUnix := strings.CutPrefix(addr, "unix:")
	if !isUnix {
		return explained(net.Listen("tcp", addr))
	}
	l, err := net.Listen("unix", path)
	if errors.Is(err, syscall.EADDRINUSE) && abandoned(path) {
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("remove an old socket: %w", err)
		}
		l, err = net.Listen("unix", path)
	}
	return explained(l, err)
}

// explained adds what to do about an address that is taken.
func explained(l net.Listener, err error) (net.Listener, error) {
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w; another process has it: end that, or choose another address", err)
	}
	return l, err
}

// abandoned says that path is a socket at which nobody listens.
func abandoned(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != os.ModeSocket {
		return false
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		_ = conn.Close() // nothing was sent
		return false
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
