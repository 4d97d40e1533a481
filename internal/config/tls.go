package config

import (
	"crypto/tls"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// TLS are the settings of encrypted ports. The files are read again when they
// change, so they are left to who serves.
type TLS struct {
	TLSMinVersion string `mapstructure:"tls-min-version"` // 1.2 or 1.3

	GRPCTLSCert      string   `mapstructure:"grpc-tls-cert"`
	GRPCTLSKey       string   `mapstructure:"grpc-tls-key"`
	GRPCTLSClientCA  string   `mapstructure:"grpc-tls-client-ca"`
	GRPCTLSClientSAN []string `mapstructure:"grpc-tls-client-san"`

	HTTPTLSCert      string   `mapstructure:"http-tls-cert"`
	HTTPTLSKey       string   `mapstructure:"http-tls-key"`
	HTTPTLSClientCA  string   `mapstructure:"http-tls-client-ca"`
	HTTPTLSClientSAN []string `mapstructure:"http-tls-client-san"`

	AdminTLSCert      string   `mapstructure:"admin-tls-cert"`
	AdminTLSKey       string   `mapstructure:"admin-tls-key"`
	AdminTLSClientCA  string   `mapstructure:"admin-tls-client-ca"`
	AdminTLSClientSAN []string `mapstructure:"admin-tls-client-san"`
}

// PortTLS is what TLS says of one port.
type PortTLS struct {
	Setting             string // what the names of its settings begin with
	Cert, Key, ClientCA string
	ClientSAN           []string
}

// On says whether the port speaks TLS.
func (p PortTLS) On() bool { return p.Cert != "" }

// ForGRPC returns the settings of the gRPC port.
func (t TLS) ForGRPC() PortTLS {
	return PortTLS{"grpc-tls", t.GRPCTLSCert, t.GRPCTLSKey, t.GRPCTLSClientCA, t.GRPCTLSClientSAN}
}

// ForHTTP returns those of the port for checks over HTTP.
func (t TLS) ForHTTP() PortTLS {
	return PortTLS{"http-tls", t.HTTPTLSCert, t.HTTPTLSKey, t.HTTPTLSClientCA, t.HTTPTLSClientSAN}
}

// ForAdmin returns those of the admin port.
func (t TLS) ForAdmin() PortTLS {
	return PortTLS{"admin-tls", t.AdminTLSCert, t.AdminTLSKey, t.AdminTLSClientCA, t.AdminTLSClientSAN}
}

// MinVersion returns TLSMinVersion as crypto/tls has it.
func (t TLS) MinVersion() uint16 { return tlsVersions[t.TLSMinVersion] }

var tlsVersions = map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}

func addTLSFlags(fs *pflag.FlagSet) {
	d := Default()
	fs.String("tls-min-version", d.TLSMinVersion, "refuse TLS of a lower `VERSION`, on all ports: 1.2 or 1.3")
	for _, port := range []struct{ name, what string }{
		{"grpc", "the gRPC port"}, {"http", "the port for checks over HTTP"}, {"admin", "the admin port"},
	} {
		fs.String(port.name+"-tls-cert", "", "encrypt "+port.what+", and show clients the certificate in this `FILE`; files are read again when they change")
		fs.String(port.name+"-tls-key", "", "the `FILE` with the key of --"+port.name+"-tls-cert")
		fs.String(port.name+"-tls-client-ca", "", "let in only clients with a certificate of an authority in this `FILE`")
		fs.StringSlice(port.name+"-tls-client-san", nil, "of those, only clients whose certificate has one of these `NAMES`, with commas between: URIs such as spiffe://cluster.local/ns/edge/sa/*, DNS names such as *.example.com; * is one part of a name, ** any number")
	}
}

func (c *checker) tls() {
	t := c.s.TLS
	c.want(t.MinVersion() != 0, "tls-min-version", strconv.Quote(t.TLSMinVersion), "1.2 or 1.3")
	c.portTLS(t.ForGRPC(), c.s.GRPCAddr)
	c.portTLS(t.ForHTTP(), c.s.HTTPAddr)
	c.portTLS(t.ForAdmin(), c.s.AdminAddr)
}

// portTLS wants all that a port needs: who asks for clients' certificates
// without one of its own would otherwise serve everybody in plain text.
func (c *checker) portTLS(p PortTLS, addr string) {
	c.want(p.Cert == "" || p.Key != "", p.Setting+"-key", "none", "the key of "+p.Setting+"-cert")
	c.want(p.Key == "" || p.Cert != "", p.Setting+"-cert", "none", "the certificate of "+p.Setting+"-key")
	c.want(p.ClientCA == "" || p.Cert != "", p.Setting+"-cert", "none", "a certificate, since there is "+p.Setting+"-client-ca")
	c.want(len(p.ClientSAN) == 0 || p.ClientCA != "", p.Setting+"-client-ca", "none", "the authorities whose word on "+p.Setting+"-client-san holds")
	port := strings.TrimSuffix(p.Setting, "-tls") + "-addr"
	c.want(p.Cert == "" || addr != "", port, "none", "an address, since there is "+p.Setting+"-cert")
}
