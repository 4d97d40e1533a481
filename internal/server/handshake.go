package server

import (
	"bytes"
	"crypto/tls"
	"errors"
	"log" //nolint:depguard // net/http wants a Logger of it; this one is read, not written
	"log/slog"
	"net"
	"strings"

	"google.golang.org/grpc/credentials"
)

// reasons are what is said of a handshake that failed, by what is in the
// error's text: net/http tells no more of it. None of them is a client's word.
var reasons = []struct{ part, reason string }{
	{"didn't provide a certificate", "no_certificate"},
	{errSAN.Error(), "name"},
	{"failed to verify certificate", "certificate"},
	{"protocol version", "version"},
	{"unsupported versions", "version"},
	{"does not look like a TLS handshake", "not_tls"},
	{"sent an HTTP request to an HTTPS server", "not_tls"},
	{"no application protocol", "alpn"},
	{"missing selected ALPN property", "alpn"},
	{"remote error", "client"}, // it did not like us
}

// refusal is the reason in an error's text: one of few words, for a label.
func refusal(text string) string {
	for _, r := range reasons {
		if strings.Contains(text, r.part) {
			return r.reason
		}
	}
	return "other"
}

// A counted has gRPC's handshakes that fail told, by a reason.
type counted struct {
	credentials.TransportCredentials
	refused func(reason string)
}

// newCredentials returns those of config.
func newCredentials(config *tls.Config, refused func(reason string)) credentials.TransportCredentials {
	return counted{credentials.NewTLS(config), refused}
}

// ServerHandshake does it, and tells if it fails.
func (c counted) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secure, info, err := c.TransportCredentials.ServerHandshake(conn)
	if err != nil && !errors.Is(err, credentials.ErrConnDispatched) {
		c.refused(refusal(err.Error()))
	}
	return secure, info, err
}

// Clone returns a copy that tells as well.
func (c counted) Clone() credentials.TransportCredentials {
	return counted{c.TransportCredentials.Clone(), c.refused}
}

// ErrorLog returns what net/http is to log to. Its lines repeat what clients
// wrote, so none is passed on: refused is told of a TLS handshake that failed,
// and l, unless it is nil, of a handler that panicked.
func ErrorLog(refused func(reason string), l *slog.Logger) *log.Logger {
	return log.New(errorLog{refused, l}, "", 0)
}

type errorLog struct {
	refused func(reason string)
	log     *slog.Logger
}

// Write reads one line, or a panic with its stack.
func (e errorLog) Write(line []byte) (int, error) {
	switch {
	case bytes.Contains(line, []byte("TLS handshake error")):
		e.refused(refusal(string(line)))
	case bytes.Contains(line, []byte("panic serving")) && e.log != nil:
		_, stack, _ := bytes.Cut(line, []byte("\n"))
		e.log.Error("a handler panicked", slog.String("stack", string(stack)))
	}
	return len(line), nil
}
