package redisstore

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// An address is what a URL says.
type address struct {
	scheme             string // without the tls that rediss says
	tls                bool
	addrs              []string // host:port; or one path
	username, password string
	primary            string // that sentinels know it by
	db                 int
	protocol           int // RESP
}

// The kinds of address.
const (
	oneServer = "redis"
	socket    = "unix"
	clustered = "redis+cluster"
	sentinels = "redis+sentinel"
)

const schemes = "redis://, rediss://, unix://, redis+cluster:// and redis+sentinel://"

// parseAddress reads a URL. Its errors do not show the URL.
func parseAddress(text string) (address, error) {
	if text == "" {
		return address{}, errors.New("it is missing")
	}
	scheme, rest, _ := strings.Cut(text, "://")
	a := address{scheme: scheme, protocol: 2}
	if strings.HasPrefix(scheme, "rediss") {
		a.scheme, a.tls = "redis"+strings.TrimPrefix(scheme, "rediss"), true
	}
	switch a.scheme {
	case oneServer, socket, clustered, sentinels:
	default:
		return address{}, fmt.Errorf("it begins with none of %s", schemes)
	}
	hosts, rest := cutHosts(rest)
	if a.scheme != oneServer && strings.Count(hosts[0], "@") > 1 {
		return address{}, errors.New("it has more than one @, which in a password is written %40")
	}
	u, err := url.Parse(scheme + "://" + hosts[0] + rest)
	if err != nil {
		return address{}, bare(err)
	}
	if err := a.server(u, hosts[1:]); err != nil {
		return address{}, err
	}
	return a, a.parameters(u)
}

// cutHosts returns the hosts, of which the first has the user still, and what
// follows them.
func cutHosts(rest string) (hosts []string, after string) {
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	user := strings.LastIndexByte(rest[:end], '@') + 1
	hosts = strings.Split(rest[user:end], ",")
	hosts[0] = rest[:user] + hosts[0]
	return hosts, rest[end:]
}

// bare returns err without the URL that it repeats.
func bare(err error) error {
	var at *url.Error
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// server reads all before the parameters; more are further hosts.
func (a *address) server(u *url.URL, more []string) error {
	a.username = u.User.Username()
	a.password, _ = u.User.Password()
	if a.scheme == socket {
		a.addrs = []string{u.Path}
		return a.socketOnly(u)
	}
	if len(more) > 0 && a.scheme == oneServer {
		return errors.New("it names several servers, want one, or redis+cluster:// or redis+sentinel://")
	}
	for _, host := range append([]string{u.Host}, more...) {
		addr, err := a.hostPort(host)
		if err != nil {
			return err
		}
		a.addrs = append(a.addrs, addr)
	}
	return a.path(strings.Split(strings.Trim(u.Path, "/"), "/"))
}

func (a *address) socketOnly(u *url.URL) error {
	if a.tls || u.Host != "" || u.Path == "" {
		return errors.New("want unix:// and the path of a socket")
	}
	return nil
}

// hostPort returns host with a port.
func (a *address) hostPort(host string) (string, error) {
	port := "6379"
	if a.scheme == sentinels {
		port = "26379"
	}
	u, err := url.Parse("redis://" + host)
	if err != nil {
		return "", bare(err)
	}
	name := u.Hostname()
	switch {
	case u.Host != host:
		return "", errors.New("one of its servers is not host:port")
	case name == "" && a.scheme != oneServer:
		return "", errors.New("one of its servers has no host")
	case name == "":
		name = "localhost"
	}
	if u.Port() != "" {
		port = u.Port()
	}
	return net.JoinHostPort(name, port), nil
}

// path reads the database, and what sentinels know the primary by.
func (a *address) path(parts []string) error {
	if a.scheme == sentinels {
		a.primary, parts = parts[0], parts[1:]
		if a.primary == "" {
			return errors.New("it does not name the primary, want redis+sentinel://host:port/primary/db")
		}
	}
	switch {
	case len(parts) == 0 || (len(parts) == 1 && parts[0] == ""):
		return nil
	case len(parts) > 1:
		return errors.New("its path has too many parts")
	}
	return a.database(parts[0])
}

func (a *address) database(text string) error {
	db, err := strconv.Atoi(text)
	switch {
	case err != nil || db < 0:
		return errors.New("invalid database number")
	case db > 0 && a.scheme == clustered:
		return errors.New("a cluster has database 0 only")
	}
	a.db = db
	return nil
}

// parameters reads what follows a question mark.
func (a *address) parameters(u *url.URL) error {
	if u.Fragment != "" {
		return errors.New("there is a # in it, which is written %23")
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return errors.New("its parameters cannot be read")
	}
	for name, value := range values {
		switch {
		case len(value) > 1:
			return fmt.Errorf("it has the parameter %q twice", name)
		case name == "db":
			if err := a.database(value[0]); err != nil {
				return err
			}
		case name == "protocol" && (value[0] == "2" || value[0] == "3"):
			a.protocol = int(value[0][0] - '0')
		case name == "protocol":
			return errors.New("the parameter protocol is 2 or 3")
		default:
			return fmt.Errorf("it has the parameter %q, the only ones are db and protocol", name)
		}
	}
	return nil
}
