package server

import (
	"bytes"
	"crypto/tls"
	"errors"
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

// An errorLog is what net/http logs to. Its lines repeat what clients wrote, so
// none is passed on: it is told of a TLS handshake that failed.
type errorLog func(reason string)

// Write reads one line.
func (refused errorLog) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("TLS handshake error")) {
		refused(refusal(string(line)))
	}
	return len(line), nil
}
