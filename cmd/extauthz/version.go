package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// These may be set by the linker: -ldflags "-X main.version=v1.2.3 -X
// main.revision=abc". Without it Go's own word is taken, which there is none of
// where the history is not at hand, as in an image.
var version, revision string

// A build says what this binary was built from.
type build struct{ version, revision string }

func thisBuild() build {
	b := build{version: version, revision: revision}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	b.version = cmp.Or(b.version, info.Main.Version)
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && b.revision == "" {
			b.revision = s.Value
		}
	}
	b.revision = cmp.Or(b.revision, "unknown")
	return b
}

// String is what the command version prints.
func (b build) String() string {
	return fmt.Sprintf("extauthz %s, revision %s, %s %s/%s", b.version, b.revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  extauthz version",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), thisBuild())
			return err
		},
	}
}
