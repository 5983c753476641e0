package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed47132306/terrarium/abi/pack"
	"github.com/seed47132306/terrarium/cmd/internal/project"
)

func packCommand(s streams) *cobra.Command {
	var out, script string
	cmd := &cobra.Command{
		Use:   "pack MODULE MANIFEST",
		Short: "Put a manifest into a module, or make a module of a script",
		Long: "pack writes MODULE with the JSON of MANIFEST as its custom section\nterrarium.creature, replacing an existing section.\n\n" +
			"pack --js SCRIPT [MANIFEST] writes a module that runs SCRIPT, which is in\nJavaScript. Nothing else is needed to run it.",
		Example: "  terrarium pack urgent.wasm urgent.json\n  terrarium pack --js count.js -o count.wasm",
		Args: func(cmd *cobra.Command, args []string) error {
			if script != "" {
				return arguments(0, 1)(cmd, args)
			}
			return arguments(2, 2)(cmd, args)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			var packed []byte
			var err error
			if script == "" {
				packed, err = withManifest(args[0], args[1])
				if out == "" {
					out = args[0]
				}
			} else {
				packed, err = project.PackScript(script, strings.Join(args, ""))
				if out == "" {
					out = strings.TrimSuffix(script, filepath.Ext(script)) + ".wasm"
				}
			}
			if err == nil {
				err = os.WriteFile(out, packed, 0o644)
			}
			if err != nil {
				return failWith(exitFailed, err)
			}
			fmt.Fprintf(s.err, "wrote %s, %d bytes\n", out, len(packed))
			return nil
		},
	}
	cmd.Flags().StringVarP(&out, "out", "o", "", "write to `FILE`; by default to MODULE, or to the name of SCRIPT with .wasm")
	cmd.Flags().StringVar(&script, "js", "", "make a module that runs `SCRIPT`")
	return cmd
}

// withManifest returns the module in a file with the manifest in another.
func withManifest(path, manifestPath string) ([]byte, error) {
	module, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	manifest, err := os.ReadFile(manifestPath)
	if err != nil {
		return nil, err
	}
	return pack.Manifest(module, manifest)
}
