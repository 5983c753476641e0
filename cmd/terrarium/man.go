package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed47132306/terrarium"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func manCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write a manual page for each command",
		Long: `man writes a manual page for each command to a directory, and terrarium.1 for the program.
It creates the directory. The pages have the same text as --help.`,
		Example: "  terrarium man ~/.local/share/man/man1",
		Args:    arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := writeManual(cmd.Root(), args[0])
			if err != nil {
				return failWith(exitFailed, err)
			}
			_, err = fmt.Fprintf(s.out, "Wrote %s to %s.\n", count(n, "page"), args[0])
			return failWith(exitFailed, err)
		},
	}
}

// writeManual writes the pages of a command and of all below it, and returns their number.
func writeManual(root *cobra.Command, dir string) (int, error) {
	const shared, readable = 0o755, 0o644
	if err := os.MkdirAll(dir, shared); err != nil {
		return 0, err
	}
	pages := manual(root)
	var errs []error
	for name, text := range pages {
		errs = append(errs, os.WriteFile(filepath.Join(dir, name), []byte(text), readable))
	}
	return len(pages), errors.Join(errs...)
}

// manual returns the pages of a command and of all below it, by the names of their files.
func manual(cmd *cobra.Command) map[string]string {
	pages := map[string]string{manName(cmd) + ".1": manPage(cmd)}
	for _, sub := range available(cmd) {
		for name, text := range manual(sub) {
			pages[name] = text
		}
	}
	return pages
}

// available are the commands below a command that help lists, except help itself.
func available(cmd *cobra.Command) (out []*cobra.Command) {
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			out = append(out, sub)
		}
	}
	return out
}

func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage describes a command in roff, with the macros of man(7).
func manPage(cmd *cobra.Command) string {
	cmd.InitDefaultHelpFlag()
	var b strings.Builder
	section := func(title string) { fmt.Fprintf(&b, ".SH %s\n", title) }
	fmt.Fprintf(&b, ".TH %s 1 \"\" %s \"terrarium\"\n", roffWord(strings.ToUpper(manName(cmd))), roffWord("terrarium "+terrarium.Version))
	section("NAME")
	fmt.Fprintf(&b, "%s \\- %s\n", roff(manName(cmd)), roff(cmd.Short))
	section("SYNOPSIS")
	if cmd.Runnable() {
		fmt.Fprintf(&b, ".nf\n%s\n.fi\n", roff(cmd.UseLine()))
	} else {
		fmt.Fprintf(&b, ".nf\n%s\n.fi\n", roff(cmd.CommandPath()+" COMMAND"))
	}
	section("DESCRIPTION")
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	b.WriteString(roffText(text))
	if subs := available(cmd); len(subs) > 0 {
		section("COMMANDS")
		for _, sub := range subs {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(sub.Name()), roff(sub.Short))
		}
	}
	manFlags(&b, cmd)
	if cmd.Example != "" {
		section("EXAMPLES")
		fmt.Fprintf(&b, ".nf\n%s\n.fi\n", roff(cmd.Example))
	}
	section("SEE ALSO")
	b.WriteString(roff(strings.Join(related(cmd), ", ")) + "\n")
	return b.String()
}

// manFlags lists the flags of a command.
func manFlags(b *strings.Builder, cmd *cobra.Command) {
	b.WriteString(".SH OPTIONS\n")
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		placeholder, meaning := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if placeholder != "" {
			name += " " + placeholder
		}
		if !zeroDefault(f) {
			meaning += fmt.Sprintf(" (default %s)", f.DefValue)
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(name), roff(meaning))
	})
}

// zeroDefault reports whether help does not mention the default of a flag.
func zeroDefault(f *pflag.Flag) bool {
	switch f.DefValue {
	case "", "0", "0s", "false", "[]":
		return true
	}
	return false
}

// related are the pages of the command above and of those below.
func related(cmd *cobra.Command) (out []string) {
	if cmd.HasParent() {
		out = append(out, manName(cmd.Parent())+"(1)")
	}
	for _, sub := range available(cmd) {
		out = append(out, manName(sub)+"(1)")
	}
	return out
}

// roff escapes text: what begins a macro at the beginning of a line, and characters with a
// meaning.
func roff(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// roffWord is one argument of a macro.
func roffWord(text string) string { return `"` + strings.ReplaceAll(roff(text), `"`, `\(dq`) + `"` }

// roffText makes paragraphs of text.
func roffText(text string) string {
	return strings.ReplaceAll(roff(strings.TrimSpace(text)), "\n\n", "\n.PP\n") + "\n"
}
