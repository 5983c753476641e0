package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/abi/pack"
	"github.com/seed47132306/terrarium/cmd/internal/project"
	"github.com/seed47132306/terrarium/conformance/stage"
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
		RunE: func(cmd *cobra.Command, args []string) error {
			var packed []byte
			var err error
			if script == "" {
				packed, err = withManifest(args[0], args[1])
				if out == "" {
					out = args[0]
				}
			} else {
				packed, err = project.PackScript(script, strings.Join(args, ""))
				if err == nil {
					err = checkScript(cmd.Context(), s, script, packed)
				}
				if out == "" {
					out = strings.TrimSuffix(script, filepath.Ext(script)) + ".wasm"
				}
			}
			if err == nil {
				if err = os.WriteFile(out, packed, 0o644); err != nil {
					err = unwritten(out, err)
				}
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

// checkScript refuses a script that is not JavaScript. It starts the module as call does.
// Other errors may depend on the configuration, which is not known.
func checkScript(ctx context.Context, s streams, name string, packed []byte) error {
	report, err := (&callFlags{}).call(ctx, s, packed, []stage.Delivery{{Kind: "start"}})
	if err != nil {
		return err
	}
	for _, r := range report.Deliveries {
		if r.Error == nil {
			continue
		}
		if _, text, found := strings.Cut(r.Error.Message, "SyntaxError: "); found {
			return &abi.Error{
				Code: abi.InvalidArgument, Message: "the script " + name + " has a syntax error: " + strings.Join(strings.Fields(text), " "),
				Remedy: "correct the script at that line and column, and pack it again", IDs: map[string]string{"path": name},
			}
		}
	}
	return nil
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
