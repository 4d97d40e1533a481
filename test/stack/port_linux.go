package stack

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

const soReusePort = 15 // SO_REUSEPORT, which package syscall leaves out

// holdPort binds a shared socket to port n of 127.0.0.1 that never listens: no
// connection comes to it, and only who shares may bind beside it.
func holdPort(n int) (io.Closer, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("hold port %d: %w", n, err)
	}
	hold := os.NewFile(uintptr(fd), fmt.Sprintf("port %d", n))
	err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, soReusePort, 1)
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Port: n, Addr: [4]byte{127, 0, 0, 1}})
	}
	if err != nil {
		hold.Close()
		return nil, fmt.Errorf("hold port %d: %w", n, err)
	}
	return hold, nil
}
