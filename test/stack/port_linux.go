package stack

import (
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"syscall"
)

const soReusePort = 15 // SO_REUSEPORT, which package syscall leaves out

// holdPort binds a shared socket to port n of 127.0.0.1, on which l listens
// alone, that never listens: no connection comes to it, and once l is closed
// only who shares may bind beside it. Since l is there until then, nobody came
// between.
func holdPort(l *net.TCPListener, n int) (io.Closer, error) {
	if err := share(l); err != nil {
		return nil, err
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	hold := os.NewFile(uintptr(fd), "port "+strconv.Itoa(n))
	err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, soReusePort, 1)
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Port: n, Addr: [4]byte{127, 0, 0, 1}})
	}
	if err != nil {
		return nil, errors.Join(err, hold.Close())
	}
	return hold, nil
}

// share lets others bind to l's port who share it too.
func share(l *net.TCPListener) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = raw.Control(func(fd uintptr) {
		set = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, soReusePort, 1)
	})
	return errors.Join(err, set)
}
