package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/cmd/internal/project"
)

func newCommand(s streams) *cobra.Command {
	var lang, dir, format string
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Create a folder with a creature that builds, tests and runs",
		Long: `new creates the folder NAME with a small creature: its source, a unit test, a recipe
with a test, a README with the commands, and the kit of the language, so that no
network is needed. The creature repeats messages in capital letters.`,
		Example: "  terrarium new frog --lang rust\n  terrarium new frog --lang c --dir creatures/frog",
		Args:    arguments(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkFormat(format); err != nil {
				return err
			}
			l, err := project.ByName(lang)
			if err != nil {
				return failWith(exitUsage, fmt.Errorf("--lang: %w", err))
			}
			if dir == "" {
				dir = args[0]
			}
			files, err := project.Create(dir, args[0], l)
			if err != nil {
				return newExit(err)
			}
			return failWith(exitFailed, printNew(s, format, args[0], dir, l, files))
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&lang, "lang", "", "`LANGUAGE` of the creature: "+strings.Join(project.Names(), ", "))
	fs.StringVar(&dir, "dir", "", "create `DIR` instead of the folder NAME")
	fs.StringVarP(&format, "format", "o", "text", "format of the result: text or json")
	return cmd
}

// newExit adds an exit code to an error of making a project.
func newExit(err error) error {
	if abi.CodeOf(err) == abi.InvalidArgument {
		return failWith(exitUsage, err)
	}
	return failWith(exitFailed, err)
}

func printNew(s streams, format, name, dir string, l *project.Language, files []string) error {
	if format == "json" {
		return printJSON(s, map[string]any{"name": name, "language": l.Name, "folder": dir, "files": files})
	}
	_, err := fmt.Fprintf(s.out, "%s has a creature in %s: %s.\n\nContinue with:\n  cd %s\n  terrarium build\n  terrarium test %s.hcl\n",
		filepath.ToSlash(dir), l.Title, strings.Join(files, ", "), filepath.ToSlash(dir), name)
	return err
}
