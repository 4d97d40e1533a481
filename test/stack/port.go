package stack

import (
	"errors"
	"fmt"
	"io"
	"net"
)

// A Port is a port of 127.0.0.1 that was free. Where the machine can, it is
// held: only a program that shares its ports, as Envoy does, gets it as well,
// so that two tests never end up with one port.
type Port struct {
	Number int
	hold   io.Closer // nil where it cannot be held
}

// tries is how many ports are looked at for one that is free.
const tries = 1000

// ReservePort finds a free port: first, else the next one above that is free.
// With 0 it takes any.
func ReservePort(first int) (*Port, error) {
	for n := first; n < first+tries; n++ {
		if p, err := reserve(n); err == nil {
			return p, nil
		}
	}
	return nil, fmt.Errorf("no port is free from %d on", first)
}

// FreePort finds a port that is free, for a program that shares its ports with
// nobody: it is not held.
func FreePort() (int, error) {
	p, err := ReservePort(0)
	if err != nil {
		return 0, err
	}
	return p.Number, p.Release()
}

func reserve(n int) (*Port, error) {
	// A program that shares its ports would share this one with a stranger:
	// only a listener that does not share finds out whether it is free.
	l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", n))
	if err != nil {
		return nil, err
	}
	defer l.Close()
	p := &Port{Number: l.Addr().(*net.TCPAddr).Port}
	p.hold, err = holdPort(l.(*net.TCPListener), p.Number)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, fmt.Errorf("hold port %d: %w", p.Number, err)
	}
	return p, nil
}

// Release gives the port up, once nothing uses it any more.
func (p *Port) Release() error {
	if p.hold == nil {
		return nil
	}
	return p.hold.Close()
}
