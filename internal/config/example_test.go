package config_test

import (
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/sluice-mesh/sluice/internal/config"
)

func Example() {
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	config.AddFlags(flags)
	if err := flags.Parse([]string{"--policy", "policy.yaml"}); err != nil {
		fmt.Println(err)
	}
	s, _, err := config.Load(flags, []string{"SLUICE_STORE_DEADLINE=10ms"})
	fmt.Println(s.StoreDeadline, s.From("store-deadline"), err)
	fmt.Println(s.Store, s.From("store"))
	// Output:
	// 10ms variable SLUICE_STORE_DEADLINE <nil>
	// memory the default
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }
