package config

import (
	"net"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Admin are the settings of the admin port.
type Admin struct {
	// AdminAddr is "" where there shall be no admin port.
	AdminAddr string `mapstructure:"admin-addr"`
	// AdminHosts are the names, but for those that always hold, by which the
	// port may be asked; "*" is any.
	AdminHosts []string `mapstructure:"admin-hosts"`
	// AdminTokenFile is "" where nobody is asked for a token. It is read again
	// at each question, so that a token can be changed.
	AdminTokenFile string `mapstructure:"admin-token-file"`
	Pprof          bool   `mapstructure:"pprof"`
}

func addAdminFlags(fs *pflag.FlagSet) {
	d := Default()
	fs.String("admin-addr", d.AdminAddr, "serve health, metrics and pprof over HTTP at this `ADDRESS`: host:port or unix:path; '' for nowhere")
	fs.StringSlice("admin-hosts", d.AdminHosts, "answer on the admin port who asks for one of these `NAMES` too, with commas between; localhost and addresses hold always, * is any name")
	fs.String("admin-token-file", d.AdminTokenFile, "on the admin port answer only health and metrics without the token in this `FILE` (Authorization: Bearer)")
	fs.Bool("pprof", d.Pprof, "serve profiles on the admin port")
}

func (c *checker) admin() {
	s := c.s
	if s.AdminAddr != "" {
		c.address("admin-addr", s.AdminAddr)
	}
	c.apart("admin-addr", s.AdminAddr, "grpc-addr", s.GRPCAddr)
	for _, host := range s.AdminHosts {
		_, _, err := net.SplitHostPort(host)
		bad := host == "" || err == nil || strings.ContainsAny(host, "/ \t") || strings.Contains(host, "*") && host != "*"
		c.want(!bad, "admin-hosts", strconv.Quote(host), "a name without port such as sluice.edge.svc, or * alone")
	}
}

// AdminToken reads AdminTokenFile.
func (a Admin) AdminToken() ([]byte, error) { return readSecret("admin-token-file", a.AdminTokenFile) }

// readAdminToken wants the file to hold a token.
func (s *Settings) readAdminToken() error {
	if s.AdminTokenFile == "" {
		return nil
	}
	_, err := s.longSecret("admin-token-file", s.AdminTokenFile)
	return err
}
