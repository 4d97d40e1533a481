package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// An Error says why the server could not be asked, or what it answered
// instead. Err is what the client said.
type Error struct {
	// Op is what was being done: take, ping, info or a bucket.
	Op    string
	Err   error
	cause string
}

// Error says what was being done and what the client said.
func (e *Error) Error() string { return fmt.Sprintf("redis: %s: %v", e.Op, e.Err) }

// Unwrap returns what the client said.
func (e *Error) Unwrap() error { return e.Err }

// Cause is one word, of a fixed few, for a metric's label:
//
//	timeout, canceled   no answer by the deadline; the caller gave up
//	refused, tls        no connection; no trust
//	broken, closed      the connection ended; the Store was closed
//	auth                the password or the user's rights
//	loading, busy       the server is starting; another script holds it, or too
//	                    many wait for it here
//	readonly, full      a replica; out of memory
//	disk, replicas      it takes no writes, for want of either
//	clients             it takes no more connections
//	clusterdown, moved  a cluster, or a node of one that has not the key
//	noscript            it forgot the script between two tries
//	foreign             the value under a bucket's key is no bucket
//	reply               the answer makes no sense
//	calendar            the running day, week, month or year ended twice meanwhile
//	other
func (e *Error) Cause() string { return e.cause }

var (
	errLengths = errors.New("there are not as many results as charges")
	errPeriod  = errors.New("a calendar's period ended while it was asked, and again")
	errForeign = errors.New("the value under its key is no bucket; it is left alone until it is gone")
	errReply   = errors.New("the script's reply has not the length that its charges ask for")
)

// failure returns err as an *Error, or nil.
func failure(op string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: op, Err: err, cause: cause(err)}
}

func cause(err error) string {
	var answer redis.Error
	if errors.As(err, &answer) {
		return answered(answer.Error())
	}
	if word := timedOut(err); word != "" {
		return word
	}
	var dial *net.OpError
	var untrusted *tls.CertificateVerificationError
	var alert tls.AlertError
	switch {
	case errors.Is(err, errQueue):
		return "busy"
	case errors.Is(err, errForeign):
		return "foreign"
	case errors.Is(err, errReply):
		return "reply"
	case errors.Is(err, errPeriod):
		return "calendar"
	case errors.Is(err, errNobody):
		return "clusterdown"
	case errors.Is(err, redis.ErrClosed):
		return "closed"
	case errors.As(err, &untrusted), errors.As(err, &alert):
		return "tls"
	case errors.As(err, &dial) && dial.Op == "dial":
		return "refused"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "broken"
	default:
		return "other"
	}
}

func timedOut(err error) string {
	var slow net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, redis.ErrPoolTimeout):
		return "timeout"
	case errors.As(err, &slow) && slow.Timeout():
		return "timeout"
	default:
		return ""
	}
}

// answered returns the cause in an error that the server answered.
func answered(text string) string {
	// Redis 6 wraps what a script meets: ERR Error running script (…): …: -OOM …
	if _, inner, ok := strings.Cut(text, ": -"); ok && strings.HasPrefix(text, "ERR Error running script") {
		text = inner
	}
	for _, a := range answers {
		if strings.HasPrefix(text, a.begins) {
			return a.cause
		}
	}
	return "other"
}

var answers = []struct{ begins, cause string }{
	{"LOADING ", "loading"},
	{"BUSY ", "busy"},
	{"READONLY ", "readonly"},
	{"MASTERDOWN ", "readonly"},
	{"OOM ", "full"},
	{"MISCONF ", "disk"},
	{"NOREPLICAS ", "replicas"},
	{"CLUSTERDOWN ", "clusterdown"},
	{"MOVED ", "moved"},
	{"ASK ", "moved"},
	{"TRYAGAIN ", "moved"},
	{"CROSSSLOT ", "moved"},
	{"NOSCRIPT ", "noscript"},
	{"NOAUTH ", "auth"},
	{"WRONGPASS ", "auth"},
	{"NOPERM ", "auth"},
	{"ERR AUTH ", "auth"},
	{"ERR ACL failure in script", "auth"},
	{"ERR The user executing the script can't run", "auth"},
	{"ERR invalid password", "auth"},
	{"ERR max number of clients reached", "clients"},
}
