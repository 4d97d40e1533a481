package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/sluice-mesh/sluice/pkg/policyfile"
)

func newConvert() *cobra.Command {
	return &cobra.Command{
		Use:   "convert FILE",
		Short: "Print a file of envoyproxy/ratelimit as a policy of ours",
		Long: `Print a file of envoyproxy/ratelimit as a policy of ours, with rules in place of
its tree.

Such a file can be served as it is; this is for those who want what our rules
have beside. What they do not say in the same way goes to standard error, a line
each. Every bucket begins full, since a rule names it anew. The exit code is 1 if
the file has faults.`,
		Example: `  extauthz convert config/mesh.yaml > policy.yaml
  extauthz validate policy.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("found %d arguments, want one file of envoyproxy/ratelimit", len(args))}
			}
			return convert(cmd, args[0])
		},
	}
}

func convert(cmd *cobra.Command, name string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	text, notes, faults := policyfile.Convert(name, data)
	for _, f := range faults {
		fmt.Fprintln(cmd.ErrOrStderr(), f)
	}
	if faults.Err() != nil {
		return errReported
	}
	for _, n := range notes {
		fmt.Fprintln(cmd.ErrOrStderr(), n)
	}
	if _, err := fmt.Fprint(cmd.OutOrStdout(), text); err != nil {
		return fmt.Errorf("write the policy: %w", err)
	}
	return nil
}
