package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/cmd/internal/project"
)

// buildFlags holds the flags of the build command.
type buildFlags struct {
	out, format string
	debug       bool
}

func buildCommand(s streams) *cobra.Command {
	var f buildFlags
	cmd := &cobra.Command{
		Use:   "build [DIR]",
		Short: "Compile the creature in a folder",
		Long: `build recognizes the language of the folder DIR, by default the current one, and runs
its compiler with the flags that make a small module. It checks the module as a run
does, writes it, and prints its size, what it imports, and its manifest. A file
manifest.json in the folder becomes the manifest of the module.

Errors of the compiler go to standard error as they are.`,
		Example: "  terrarium build\n  terrarium build creatures/frog --debug -o frog.wasm",
		Args:    arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.build(cmd, s, append(args, ".")[0])
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.out, "out", "o", "", "write to `FILE`; by default to NAME.wasm in DIR")
	fs.StringVar(&f.format, "format", "text", "format of the result: text or json")
	fs.BoolVar(&f.debug, "debug", false, "keep the names of functions and the lines of the source, which make the module larger")
	return cmd
}

func (f *buildFlags) build(cmd *cobra.Command, s streams, dir string) error {
	if f.format != "text" && f.format != "json" {
		return usage("--format %s: use text or json", f.format)
	}
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	p, err := project.Detect(dir)
	if err != nil {
		return failWith(exitFailed, err)
	}
	built, err := p.Build(ctx, project.Options{Debug: f.debug})
	if built != nil && built.Output != "" {
		fmt.Fprintln(s.err, strings.TrimSuffix(printable(built.Output), "\n"))
	}
	if ctx.Err() != nil {
		return interrupted(ctx)
	}
	if err != nil {
		return failWith(exitFailed, err)
	}
	out := f.out
	if out == "" {
		out = filepath.Join(dir, built.Name+".wasm")
	}
	if err := os.WriteFile(out, built.Wasm, 0o644); err != nil {
		return failWith(exitFailed, err)
	}
	return failWith(exitFailed, printBuilt(s, f.format, p.Language, out, built.Info))
}

func printBuilt(s streams, format string, l *project.Language, out string, info *abi.ModuleInfo) error {
	imports := map[string][]string{}
	for _, i := range info.Imports {
		imports[i.Module] = append(imports[i.Module], i.Name)
	}
	if format == "json" {
		return printJSON(s, map[string]any{"language": l.Name, "file": out, "bytes": info.Size, "sha256": info.SHA256, "imports": imports, "manifest": info.Manifest})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, from %s\n", out, humanize.IBytes(uint64(info.Size)), l.Title)
	for _, module := range slices.Sorted(maps.Keys(imports)) {
		fmt.Fprintf(&b, "  imports of %s: %s\n", module, strings.Join(imports[module], ", "))
	}
	if m := info.Manifest; m == nil {
		fmt.Fprintln(&b, "  no manifest")
	} else {
		fmt.Fprintln(&b, "  manifest:", strings.Join(slices.DeleteFunc([]string{m.Name, m.Version, m.Description}, func(s string) bool { return s == "" }), ", "))
	}
	_, err := s.text().Write([]byte(b.String()))
	return err
}
