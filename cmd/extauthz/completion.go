package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// completion writes what has a shell complete our command lines.
var completion = map[string]func(root *cobra.Command, w io.Writer) error{
	"bash": func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
	"zsh":  (*cobra.Command).GenZshCompletion,
	"fish": func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
}

func newCompletion() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print what has a shell complete commands and flags",
		Long: `Print what has a shell complete commands and flags. The shell reads it when it
starts, or at once as in the first example. That of bash needs the package
bash-completion.`,
		Example: `  source <(extauthz completion bash)
  extauthz completion zsh > "${fpath[1]}/_extauthz"
  extauthz completion fish > ~/.config/fish/completions/extauthz.fish`,
		ValidArgs: []string{"bash", "zsh", "fish"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || completion[args[0]] == nil {
				return usageError{fmt.Errorf("found %q, want one shell: bash, zsh or fish", strings.Join(args, " "))}
			}
			return completion[args[0]](cmd.Root(), cmd.OutOrStdout())
		},
	}
}
