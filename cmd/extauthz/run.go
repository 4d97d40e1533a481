package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// untilTold returns a context that ends with the first signal to end. A second
// one ends the process at once.
func untilTold() context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx
}

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2 // there is no such flag, setting or command, or no such value
)

// run runs the command line args with the variables environ, until it is done
// or ctx ends, and returns the exit code.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	root := newRoot(environ)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errReported):
		return exitFailed
	case errors.As(err, &usage):
		fmt.Fprint(stderr, prefixed(err), "Try: ", cmd.CommandPath(), " --help\n")
		return exitUsage
	default:
		fmt.Fprint(stderr, prefixed(err))
		return exitFailed
	}
}

// prefixed is err with the program's name before its first line. What follows
// are faults, each with a place of its own.
func prefixed(err error) string { return fmt.Sprintf("extauthz: %v\n", err) }

// A usageError is a command line or a setting that there is not.
type usageError struct{ error }

// Unwrap returns what is wrong with it.
func (e usageError) Unwrap() error { return e.error }

// errReported is the error of a command that has said itself what failed.
var errReported = errors.New("reported")

func newRoot(environ []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "extauthz",
		Short: "Rate limits for Envoy: ext_authz and the rate limit service, by one policy",
		Example: `  extauthz validate policy.yaml
  extauthz serve --policy policy.yaml`,
		Version:                    thisBuild().String(),
		Args:                       cobra.ArbitraryArgs,
		RunE:                       noCommand,
		DisableFlagsInUseLine:      true,
		SuggestionsMinimumDistance: 2,
		SilenceErrors:              true,
		SilenceUsage:               true,
		CompletionOptions:          cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{plainer(err)} })
	root.AddCommand(newServe(environ), newValidate(), newExplain(environ), newHealth(environ), newBench(), newVersion(), newRatelimit(environ), newConvert(), newCompletion())
	return root
}

// plainer says of a flag's value what is wanted, where its type's own error
// tells only what is wrong with it.
func plainer(err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err
	}
	want := wanted[bad.GetFlag().Value.Type()]
	if want == "" {
		return err
	}
	return fmt.Errorf("--%s: found %q, want %s", bad.GetFlag().Name, bad.GetValue(), want)
}

// wanted are the values of a flag, by its type.
var wanted = map[string]string{
	"bool":     "true or false",
	"duration": "a duration such as 25ms or 10s",
	"float64":  "a number such as 0.5",
	"int":      "a whole number",
	"int64":    "a whole number",
	"intSlice": "whole numbers, with commas between",
	"size":     "a size such as 64MiB",
	"uint32":   "a whole number from 0 to 4294967295",
	"uint64":   "a whole number, 0 or more",
}

// noCommand says that args begin with no command.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		cmd.PrintErrln(cmd.UsageString())
		return usageError{errors.New("no command given")}
	}
	hint := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return usageError{fmt.Errorf("unknown command %q%s", args[0], hint)}
}

// noArgs refuses arguments.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("unknown argument %q", args[0])}
	}
	return nil
}
