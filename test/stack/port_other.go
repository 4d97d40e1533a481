//go:build !linux

package stack

import (
	"errors"
	"io"
)

func holdPort(int) (io.Closer, error) { return nil, errors.ErrUnsupported }
