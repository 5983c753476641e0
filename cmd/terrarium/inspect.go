package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/host"
	"github.com/seed47132306/terrarium/operations"
)

// standardInput stands for standard input in place of a file.
const standardInput = "-"

var errNotACreature = errors.New("the module cannot be a creature")

func inspectCommand(s streams) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "inspect MODULE",
		Short: "Describe a module, and list the reasons why it cannot be a creature",
		Long: `inspect reads a module and shows its imports and exports, its manifest, its sections
by size, the debug information, the limits that are at least half used, and what
compiling it is expected to cost. It lists every breach of the contract for creatures,
each with a remedy. The module is neither compiled nor run.

MODULE is a file, builtin:NAME, or - for standard input.

Exit codes: 0 the module can be a creature; 1 it cannot; 2 it cannot be read, or the
command line is not valid.`,
		Example: "  terrarium inspect build/spotter.wasm\n  terrarium inspect builtin:echo -o json",
		Args:    arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(format); err != nil {
				return err
			}
			wasm, err := moduleBytes(cmd.Context(), s, args[0])
			if err != nil {
				return failWith(exitUsage, err)
			}
			x, err := terrarium.ExamineModule(cmd.Context(), wasm, translations()...)
			if err != nil {
				return failWith(exitFailed, err)
			}
			return printExamination(s, args[0], x, format)
		},
	}
	formatFlag(cmd, &format)
	return cmd
}

// moduleBytes reads a module. Of one that is too large it returns enough to detect that.
func moduleBytes(ctx context.Context, s streams, name string) ([]byte, error) {
	if name == standardInput {
		return io.ReadAll(io.LimitReader(s.in, abi.MaxModuleBytes+1))
	}
	wasm, err := terrarium.LoadModule(ctx, name)
	if abi.CodeOf(err) != abi.TooLarge {
		return wasm, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, abi.MaxModuleBytes+1))
}

func printExamination(s streams, name string, x *host.Examination, format string) error {
	problems := []*operations.ErrorRecord{}
	for _, p := range x.Problems {
		problems = append(problems, operations.NewErrorRecord(p))
	}
	var err error
	if format == "json" {
		err = printJSON(s, struct {
			Module string `json:"module"`
			Fits   bool   `json:"fits"`
			*host.Examination
			Problems []*operations.ErrorRecord `json:"problems"`
		}{name, len(problems) == 0, x, problems})
	} else {
		_, err = io.WriteString(s.text(), examinationText(name, x, problems))
		err = failWith(exitFailed, err)
	}
	if err == nil && len(problems) > 0 {
		return &exit{code: exitFailed, err: errNotACreature, shown: true}
	}
	return err
}

func examinationText(name string, x *host.Examination, problems []*operations.ErrorRecord) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s, SHA-256 %s\n", oneLine(name), size(x.Bytes), x.SHA256)
	if x.ABI > 0 {
		fmt.Fprintf(&b, "  ABI       %d\n", x.ABI)
	}
	if x.Manifest != nil {
		describeManifest(&b, x.Manifest)
	}
	if x.MemoryMin > 0 {
		most := "no maximum"
		if x.MemoryMax > 0 {
			most = "at most " + size(x.MemoryMax)
		}
		fmt.Fprintf(&b, "  memory    %s at the start, %s\n", size(x.MemoryMin), most)
	}
	if c := x.Compile; c != nil {
		fmt.Fprintf(&b, "  compiling at most about %d ms and %s; %d ms and %s are allowed\n", c.MS, size(c.Bytes), c.MostMS, size(c.MostBytes))
	}
	if x.Engine != "" {
		fmt.Fprintf(&b, "  engine    %s: %s\n", x.Engine, x.EngineReason)
	}
	if len(x.Sections) > 0 {
		fmt.Fprintf(&b, "  debug     %s\n", debugText(x.Debug))
	}
	for _, u := range x.Near {
		fmt.Fprintf(&b, "  near      %s: %s of %s\n", u.Limit, humanize.Comma(u.Used), humanize.Comma(u.Most))
	}
	listSymbols(&b, "imports", x.Imports)
	listSymbols(&b, "exports", x.Exports)
	listSectionSizes(&b, x.Sections)
	if len(problems) == 0 {
		b.WriteString("\nIt can be a creature.\n")
		return b.String()
	}
	fmt.Fprintf(&b, "\nIt cannot be a creature: %s.\n", count(len(problems), "problem"))
	for _, p := range problems {
		fmt.Fprintf(&b, "  - %s\n", p.Message)
		if p.Remedy != "" {
			fmt.Fprintf(&b, "    Remedy: %s\n", p.Remedy)
		}
	}
	return b.String()
}

func describeManifest(b *strings.Builder, m *abi.Manifest) {
	fmt.Fprintf(b, "  manifest  %s\n", oneLine(strings.TrimSpace(m.Name+" "+m.Version)))
	if m.Description != "" {
		fmt.Fprintf(b, "            %s\n", oneLine(m.Description))
	}
	for _, list := range []struct {
		what     string
		channels []abi.ManifestChannel
	}{{"listens on", m.Listen}, {"sends on", m.Send}} {
		var names []string
		for _, c := range list.channels {
			if c.Optional {
				c.Alias += " (optional)"
			}
			names = append(names, c.Alias)
		}
		if len(names) > 0 {
			fmt.Fprintf(b, "            %s %s\n", list.what, oneLine(strings.Join(names, ", ")))
		}
	}
	if len(m.Capabilities) > 0 {
		fmt.Fprintf(b, "            needs %s\n", oneLine(strings.Join(m.Capabilities, ", ")))
	}
}

func debugText(d host.DebugInfo) string {
	what := "none: a trap names neither lines nor functions"
	switch {
	case d.Lines:
		what = "a trap names its file and line"
	case d.Names:
		what = "a trap names its functions, but no lines"
	}
	if d.Bytes > 0 {
		what += ", " + size(int64(d.Bytes))
	}
	return what
}

// shownSymbols and shownSections are how many are listed as text; JSON has all.
const (
	shownSymbols  = 100
	shownSections = 20
)

func listSymbols(b *strings.Builder, title string, symbols []host.Symbol) {
	if len(symbols) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", title)
	for i, x := range symbols {
		if i == shownSymbols {
			fmt.Fprintf(b, "  … and %s more\n", humanize.Comma(int64(len(symbols)-i)))
			return
		}
		name := x.Name
		if x.Module != "" {
			name = x.Module + "." + name
		}
		if x.Type == "" {
			x.Type = string(x.Kind)
		}
		fmt.Fprintf(b, "  %-36s %s\n", oneLine(name), x.Type)
	}
}

func listSectionSizes(b *strings.Builder, sections []host.SectionSize) {
	if len(sections) == 0 {
		return
	}
	b.WriteString("\nsections, the largest first\n")
	for i, x := range sections {
		if i == shownSections {
			fmt.Fprintf(b, "  … and %s more\n", humanize.Comma(int64(len(sections)-i)))
			return
		}
		if x.Custom {
			x.Name += " (custom)"
		}
		fmt.Fprintf(b, "  %-36s %s\n", oneLine(x.Name), count(x.Bytes, "byte"))
	}
}

// size returns a number of bytes in text.
func size(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }
