package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/seed47132306/terrarium/abi/pack"
)

func packCommand(s streams) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "pack MODULE MANIFEST",
		Short: "Put a manifest into a module",
		Long:  "pack writes MODULE with the JSON of MANIFEST as its custom section\nterrarium.creature, replacing an existing section.",
		Args:  arguments(2, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			module, err := os.ReadFile(args[0])
			if err != nil {
				return failWith(exitFailed, err)
			}
			manifest, err := os.ReadFile(args[1])
			if err != nil {
				return failWith(exitFailed, err)
			}
			packed, err := pack.Manifest(module, manifest)
			if err != nil {
				return failWith(exitFailed, err)
			}
			if out == "" {
				out = args[0]
			}
			if err := os.WriteFile(out, packed, 0o644); err != nil {
				return failWith(exitFailed, err)
			}
			fmt.Fprintf(s.err, "wrote %s, %d bytes\n", out, len(packed))
			return nil
		},
	}
	cmd.Flags().StringVarP(&out, "out", "O", "", "write to `FILE`, and leave MODULE unchanged")
	return cmd
}
