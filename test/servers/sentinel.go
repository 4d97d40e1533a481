package servers

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A Watched primary, its replica, and the three sentinels that watch it. They
// end with their test.
type Watched struct {
	// Primary and Replica are so at the start.
	Primary, Replica *Server
	Sentinels        []*Server
}

// Sentinel starts a primary, a replica and three sentinels, and waits until
// all know each other. A primary that is away for half a second is replaced.
// The Password is that of the sentinels too.
func Sentinel(t testing.TB, k Kind, o Options) *Watched {
	t.Helper()
	if o.Password != "" {
		o.Args = append(slices.Clone(o.Args), "--masterauth", o.Password)
	}
	if o.Certificates != nil {
		o.Args = append(slices.Clone(o.Args), "--tls-replication", "yes")
	}
	o.Args = append(slices.Clone(o.Args), "--repl-diskless-sync-delay", "0")
	w := &Watched{Primary: Start(t, k, o), Replica: Start(t, k, o)}
	host, port, _ := net.SplitHostPort(w.Primary.Addr)
	w.Replica.Do(t, "REPLICAOF", host, port)
	w.Replica.Await(t, linked, "INFO", "replication")
	for range 3 {
		w.Sentinels = append(w.Sentinels, w.sentinel(t, k, o))
	}
	for _, s := range w.Sentinels {
		s.Await(t, func(text string) bool {
			return field(text, "num-other-sentinels") == "2" && field(text, "num-slaves") == "1" && field(text, "flags") == "master"
		}, "SENTINEL", "MASTER", PrimaryName)
	}
	return w
}

// PrimaryName is what sentinels call the primary.
const PrimaryName = "primary"

func (w *Watched) sentinel(t testing.TB, k Kind, o Options) *Server {
	t.Helper()
	o.Args = nil
	return startFree(t, k, o, func(s *Server) []string {
		host, port, _ := net.SplitHostPort(w.Primary.Addr)
		conf := fmt.Sprintf("sentinel monitor %[1]s %[2]s %[3]s 2\nsentinel down-after-milliseconds %[1]s 500\nsentinel failover-timeout %[1]s 2000\n", PrimaryName, host, port)
		if o.Password != "" {
			conf += fmt.Sprintf("sentinel auth-pass %s %s\nsentinel sentinel-pass %s\n", PrimaryName, o.Password, o.Password)
		}
		if o.Certificates != nil {
			conf += "tls-replication yes\n"
		}
		s.conf = filepath.Join(s.dir, "conf")
		if err := os.WriteFile(s.conf, []byte(conf), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{"--sentinel"}
	})
}

// URL returns where the sentinels are, as redis+sentinel:// with the password
// of the servers.
func (w *Watched) URL() string {
	addrs := make([]string, len(w.Sentinels))
	for i, s := range w.Sentinels {
		addrs[i] = s.Addr
	}
	scheme, user, _ := w.Primary.parts()
	return scheme + "+sentinel://" + user + strings.Join(addrs, ",") + "/" + PrimaryName
}

// AwaitPrimary waits until most sentinels say that s is the primary, and s
// too.
func (w *Watched) AwaitPrimary(t testing.TB, s *Server) {
	t.Helper()
	host, port, _ := net.SplitHostPort(s.Addr)
	for _, sentinel := range w.Sentinels[:2] {
		sentinel.Await(t, func(text string) bool { return text == host+"\n"+port }, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", PrimaryName)
	}
	s.Await(t, func(info string) bool { return strings.Contains(info, "role:master") }, "INFO", "replication")
}

// field returns the line after name.
func field(text, name string) string {
	lines := strings.Split(text, "\n")
	if i := slices.Index(lines, name); i >= 0 && i+1 < len(lines) {
		return lines[i+1]
	}
	return ""
}
