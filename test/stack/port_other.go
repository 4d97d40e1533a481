//go:build !linux

package stack

import (
	"errors"
	"io"
	"net"
)

func holdPort(*net.TCPListener, int) (io.Closer, error) { return nil, errors.ErrUnsupported }
