package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/seed47132306/terrarium/host"
	"github.com/seed47132306/terrarium/host/translation/generate"
)

func translateCommand(s streams) *cobra.Command {
	var out, pkg string
	cmd := &cobra.Command{
		Use:   "translate MODULE",
		Short: "Translate a module to a Go package, for a program that embeds terrarium",
		Long: `translate checks and meters a module as a run does, translates the result to Go, and
writes a package of two files. A program that passes its Code() in Options.Translations
runs the module as Go code: with the same fuel, limits, results and errors as in any
other engine, and faster. The host recognizes the module by the hash of its metered form,
so the package has to be translated again when the module or terrarium changes; until
then, the module runs in the usual engine.

MODULE is a file, builtin:NAME, or - for standard input. The translator wasm2go is run with
the go command. Modules that use vector instructions, change tables, or have debugging
information are refused: their translations would not behave like them in every respect.
A module with floating-point numbers runs as its translation on amd64 and arm64 only.

Exit codes: 0 the package is written; 1 the module cannot be translated; 2 the module cannot
be read, or the command line is not valid.`,
		Example: "  terrarium translate build/spotter.wasm --out internal/spotter\n  //go:generate go run github.com/seed47132306/terrarium/cmd/terrarium translate spotter.wasm --out spotter",
		Args:    arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return usage("translate needs --out, the folder of the package")
			}
			if pkg == "" {
				pkg = filepath.Base(filepath.Clean(out))
			}
			if !packageName.MatchString(pkg) {
				return usage("%q is not the name of a Go package: choose one with --package, of lower-case letters and digits", pkg)
			}
			wasm, err := moduleBytes(cmd.Context(), s, args[0])
			if err != nil {
				return failWith(exitUsage, err)
			}
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			return failWith(exitFailed, translate(ctx, s, wasm, out, pkg))
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&out, "out", "o", "", "write the package to the folder `DIR`, which is created")
	fs.StringVar(&pkg, "package", "", "the `NAME` of the package; by default that of the folder")
	return cmd
}

var packageName = regexp.MustCompile(`^[a-z][a-z0-9]{0,63}$`)

// translate writes the translation of a module.
func translate(ctx context.Context, s streams, wasm []byte, out, pkg string) (err error) {
	h, err := host.New(ctx, host.Options{Interpreter: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close(context.WithoutCancel(ctx))) }()
	files, err := generate.Files(ctx, h, wasm, generate.Options{Package: pkg, Name: pkg})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	for _, name := range []string{generate.CodeFile, generate.InstanceFile} {
		path := filepath.Join(out, name)
		if err := os.WriteFile(path, files[name], 0o666); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(s.text(), path); err != nil {
			return err
		}
	}
	return nil
}
