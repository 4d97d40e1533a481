package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/sluice-mesh/sluice/pkg/policy"
	"github.com/sluice-mesh/sluice/pkg/policyfile"
)

func newValidate() *cobra.Command {
	var o policyfile.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "validate POLICY...",
		Short: "Check policy files and folders, and print all that is wrong with them",
		Long: `Check policy files and folders together, as serve would read them.

Every fault goes to standard output, as file:line:column: field: what was found
and what is wanted. The exit code is 1 if there is one. Warnings are printed too
and leave the exit code 0.`,
		Example: `  extauthz validate policy.yaml
  extauthz validate --json policies/ | jq .faults`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("no policy given, want files or folders such as policy.yaml")}
			}
			o.Paths = args
			return validate(cmd.OutOrStdout(), o, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object: ok, rules, files and faults")
	cmd.Flags().BoolVar(&o.Merge, "merge-domains", false, "as serve will be given it")
	cmd.Flags().StringVar(&o.Default, "domain", "", "the `DOMAIN` that serve will be given")
	return cmd
}

// A report is what validate found.
type report struct {
	OK     bool              `json:"ok"`
	Rules  int               `json:"rules"`
	Files  int               `json:"files"`
	Faults policyfile.Faults `json:"faults"`
}

func validate(w io.Writer, o policyfile.Options, asJSON bool) error {
	set, faults := policyfile.Load(o)
	r := report{OK: faults.Err() == nil, Files: len(set.Policies()), Rules: len(rules(set)), Faults: faults}
	if r.Faults == nil {
		r.Faults = policyfile.Faults{} // a list in JSON, not null
	}
	if err := r.write(w, asJSON); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	if !r.OK {
		return errReported
	}
	return nil
}

func (r report) write(w io.Writer, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	for _, f := range r.Faults {
		if _, err := fmt.Fprintln(w, f); err != nil {
			return err
		}
	}
	if !r.OK {
		return nil
	}
	_, err := fmt.Fprintf(w, "ok: %s in %s\n", counted(r.Rules, "rule"), counted(r.Files, "file"))
	return err
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// rules lists the rules of all policies of set.
func rules(set *policy.Set) []*policy.Rule {
	var all []*policy.Rule
	for _, p := range set.Policies() {
		all = append(all, p.Rules()...)
	}
	return all
}
