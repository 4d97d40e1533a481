// Package resp speaks to a Redis without a client library: what the server
// itself says, for about the least that asking it can cost.
package resp

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
)

// A Conn is a connection to a server, for one caller at a time, who closes it.
// After an error it is of no more use, unless the error is the whole answer to a
// command.
type Conn struct {
	net.Conn
	in  *bufio.Reader
	out []byte
}

// New speaks over conn, which is the Conn's from then on.
func New(conn net.Conn) *Conn { return &Conn{Conn: conn, in: bufio.NewReader(conn)} }

// Dial connects to host:port.
func Dial(addr string) (*Conn, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return New(conn), nil
}

// Do has the server carry out a command, and returns the answer as text: a
// list has its items on lines of their own, and nil is -1.
func (c *Conn) Do(words ...string) (string, error) {
	c.out = append(strconv.AppendInt(append(c.out[:0], '*'), int64(len(words)), 10), "\r\n"...)
	for _, w := range words {
		c.out = append(strconv.AppendInt(append(c.out, '$'), int64(len(w)), 10), "\r\n"...)
		c.out = append(append(c.out, w...), "\r\n"...)
	}
	if _, err := c.Write(c.out); err != nil {
		return "", err
	}
	return c.answer()
}

func (c *Conn) answer() (string, error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return "", err
	}
	kind, line := line[0], strings.TrimRight(line[1:], "\r\n")
	n, _ := strconv.Atoi(line) // 0 for what has no length
	switch {
	case kind == '-':
		return "", errors.New(line)
	case kind == '$' && n >= 0:
		text := make([]byte, n+len("\r\n"))
		_, err := io.ReadFull(c.in, text)
		return string(text[:n]), err
	case kind == '*' && n >= 0:
		return c.list(n)
	default:
		return line, nil
	}
}

func (c *Conn) list(n int) (string, error) {
	items := make([]string, n)
	for i := range items {
		var err error
		if items[i], err = c.answer(); err != nil {
			return "", err
		}
	}
	return strings.Join(items, "\n"), nil
}
