package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/sluice-mesh/sluice/internal/config"
)

// healthOptions are the command line of health.
type healthOptions struct {
	addr, service string
	timeout, wait time.Duration
	tls           clientTLS
	json          bool
}

func newHealth(environ []string) *cobra.Command {
	var o healthOptions
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask a running server whether it serves: for probes where there is no other program",
		Long: `Ask a running server, by gRPC health, whether it serves. The exit code is 0 if it
does, 1 if it does not or does not answer. It does not serve while it drains;
that Redis is away does not change the answer. The service "readiness" is what
/readyz says, and "liveness" serves as long as the process does.`,
		Example: `  extauthz health                                  # beside extauthz serve, in the same container
  extauthz health --addr sluice:9001 --wait 30s    # until it serves, at most so long
  extauthz health --addr sluice:9001 --tls-ca ca.pem --json | jq .status`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.report(cmd.Context(), cmd.OutOrStdout()) },
	}
	o.addFlags(cmd.Flags(), environ)
	return cmd
}

func (o *healthOptions) addFlags(flags *pflag.FlagSet, environ []string) {
	flags.StringVar(&o.addr, "addr", servedAt(environ), "the server's gRPC `ADDRESS`: host:port or unix:path (by default what serve would take: SLUICE_GRPC_ADDR, else "+config.Default().GRPCAddr+")")
	flags.StringVar(&o.service, "service", "", "ask about this `SERVICE`, such as envoy.service.auth.v3.Authorization (default: the server)")
	flags.DurationVar(&o.timeout, "timeout", 2*time.Second, "the most `TIME` that an answer may take")
	flags.DurationVar(&o.wait, "wait", 0, "ask again for this `TIME` until it serves; 0 asks once")
	flags.BoolVar(&o.json, "json", false, "print one JSON object: ok, addr, service, status and error")
	o.tls.addFlags(flags)
}

// servedAt is where serve would listen with the variables environ.
func servedAt(environ []string) string {
	return cmp.Or(variable(environ, "SLUICE_GRPC_ADDR"), config.Default().GRPCAddr)
}

// variable is the last value of name that is not empty.
func variable(environ []string, name string) (last string) {
	for _, line := range environ {
		if value, ok := strings.CutPrefix(line, name+"="); ok {
			last = cmp.Or(value, last)
		}
	}
	return last
}

// A healthReport is what was found out about a server. Status is UNKNOWN where
// it did not say.
type healthReport struct {
	OK      bool   `json:"ok"`
	Addr    string `json:"addr"`
	Service string `json:"service"`
	Status  string `json:"status"`
	Error   string `json:"error,omitempty"`
}

func (o *healthOptions) report(ctx context.Context, w io.Writer) error {
	serving, err := o.ask(ctx)
	var usage usageError
	if errors.As(err, &usage) {
		return err
	}
	r := healthReport{OK: err == nil, Addr: o.addr, Service: o.service, Status: serving.String()}
	if !o.json {
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s: %s\n", r.Addr, r.Status)
		return err
	}
	if err != nil {
		r.Error = err.Error()
	}
	if err := json.NewEncoder(w).Encode(r); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	if !r.OK {
		return errReported
	}
	return nil
}

// ask asks until the server serves or the time to wait is over.
func (o *healthOptions) ask(ctx context.Context) (healthv1.HealthCheckResponse_ServingStatus, error) {
	conn, err := o.dial()
	if err != nil {
		return healthv1.HealthCheckResponse_UNKNOWN, usageError{err}
	}
	defer conn.Close()
	last := time.Now().Add(o.wait)
	for {
		serving, err := o.askOnce(ctx, conn)
		if err == nil || !time.Now().Before(last) || pause(ctx) != nil {
			return serving, err
		}
	}
}

// pause is between two questions.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(200 * time.Millisecond):
		return nil
	}
}

func (o *healthOptions) dial() (*grpc.ClientConn, error) {
	creds, err := o.tls.credentials()
	if err != nil {
		return nil, err
	}
	// What is asked is beside us or in the same mesh: no proxy is between.
	conn, err := grpc.NewClient(dialable(o.addr), grpc.WithTransportCredentials(creds), grpc.WithNoProxy())
	if err != nil {
		return nil, fmt.Errorf("addr: found %q, want host:port or unix:path: %w", o.addr, err)
	}
	return conn, nil
}

// dialable is addr, or the loopback address where addr listens at all of them.
func dialable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || strings.HasPrefix(addr, "unix:") {
		return addr
	}
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

func (o *healthOptions) askOnce(ctx context.Context, conn *grpc.ClientConn) (healthv1.HealthCheckResponse_ServingStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	resp, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{Service: o.service})
	serving := resp.GetStatus()
	switch {
	case status.Code(err) == codes.NotFound:
		return serving, fmt.Errorf("%s has no service %s", o.addr, o.service)
	case status.Code(err) == codes.Unimplemented:
		return serving, fmt.Errorf("%s speaks gRPC but knows nothing of health; is this the gRPC address of extauthz serve?", o.addr)
	case err != nil:
		return serving, fmt.Errorf("%s does not answer: %s; is this the gRPC address of extauthz serve?", o.addr, status.Convert(err).Message())
	case serving != healthv1.HealthCheckResponse_SERVING:
		return serving, fmt.Errorf("%s says %s: it drains, or has not begun", o.addr, serving)
	}
	return serving, nil
}
