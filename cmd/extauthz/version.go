package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version may be set by the linker: -ldflags "-X main.version=v1.2.3".
var version string

// A build says what this binary was built from.
type build struct{ version, revision string }

func thisBuild() build {
	b := build{version: version, revision: "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if b.version == "" {
		b.version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.revision = s.Value
		}
	}
	return b
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  extauthz version",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := thisBuild()
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "extauthz %s, revision %s, %s %s/%s\n",
				b.version, b.revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
