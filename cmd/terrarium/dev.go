package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/cmd/internal/project"
	"github.com/seed47132306/terrarium/cmd/internal/watch"
)

// devFlags holds the flags of the dev command.
type devFlags struct {
	runFlags
	show  bool // --watch
	check string
	debug bool
	turns int // how many recorded turns a new module repeats; 0: none
}

func devCommand(s streams) *cobra.Command {
	f := &devFlags{}
	cmd := &cobra.Command{
		Use:   "dev DIR | RECIPE",
		Short: "Run a recipe, and rebuild and replace its modules when their sources change",
		Long: `dev runs a recipe as run does. DIR is a folder with a recipe, such as one that terrarium
new creates. If the source of a module is in the same folder as the module, dev builds the
module as build does, and writes it into that folder. Whenever a source, another module or
the recipe changes, the creatures concerned continue with the new module or settings, and
keep their state, timers and waiting deliveries.

If something cannot be built, does not start or is not valid, dev shows why, and the last
good version continues to run. If a source changes during its build, dev stops the build
and starts it again. When a creature gets a new module or other settings, dev redelivers
those of its deliveries that have become dead letters since dev began.

With --watch, a creature's recorded turns are first run on the new module, and the
first turn that differs is shown. With --check, a module that does not repeat them
is not used.

With -o json, dev also writes reports to standard output, between the messages: objects
with the attribute event, which is built, build_failed, checked, refused, warned,
applied or waiting. dev runs until it is interrupted.`,
		Example: `  terrarium dev frog --input in=- --output out
  terrarium dev team.hcl --input lines=lines.txt --output report --session S --check 100`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.dev(cmd, s, args[0]) },
	}
	f.add(cmd)
	fs := cmd.Flags()
	fs.StringArrayVar(&f.outputs, "output", nil, "print the messages of `CHANNEL`; may be repeated")
	fs.StringVarP(&f.format, "format", "o", "text", "format of outputs, and of what dev reports: text or json")
	fs.BoolVar(&f.show, "watch", false, "run recorded turns of a creature on a new module first, and show the first that differs")
	fs.StringVar(&f.check, "check", "", "run the last `N` recorded turns, or all, on a new module first, and refuse the module if a turn differs; with --watch, only show the difference")
	fs.BoolVar(&f.debug, "debug", false, "keep the names of functions and the lines of the source in the modules")
	fs.Lookup("exit-when-idle").Usage = "exit when all input has been handled, or at the first failure before the recipe runs"
	return cmd
}

func (f *devFlags) dev(cmd *cobra.Command, s streams, path string) (err error) {
	if err := checkFormat(f.format); err != nil {
		return err
	}
	if err := f.parseCheck(); err != nil {
		return err
	}
	recipe, err := recipeIn(path)
	if err != nil {
		return err
	}
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	w, err := watch.New()
	if err != nil {
		return failWith(exitFailed, err)
	}
	defer func() { err = errors.Join(err, failWith(exitFailed, w.Close())) }()
	d := &developing{f: f, s: s, path: recipe, watcher: w, modules: map[string]*devModule{}}
	return f.runWith(ctx, cmd, s, func(ctx context.Context, x *running) ([]*terrarium.Applied, error) { return d.begin(ctx, x) })
}

// parseCheck sets how many turns are run on a new module.
func (f *devFlags) parseCheck() error {
	switch n, err := strconv.Atoi(f.check); {
	case f.check == "all", f.check == "" && f.show:
		f.turns = terrarium.AllTurns
	case f.check == "":
	case err != nil || n < 1:
		return usage("--check %s: use a number of turns, or all", f.check)
	default:
		f.turns = n
	}
	return nil
}

// recipeIn returns the recipe that a path means. The only recipe file of a folder is taken
// by its name, as an author would run it, and not as a folder of files: a session knows the
// recipe by its path.
func recipeIn(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", usage("there is no folder or recipe with the path %s: name the folder of a creature, or a recipe; terrarium new makes a creature", path)
	}
	if !info.IsDir() {
		return path, nil
	}
	files, err := recipesIn(path)
	switch {
	case err != nil:
		return "", failWith(exitFailed, err)
	case len(files) == 1:
		return files[0], nil
	case len(files) > 1:
		return path, nil
	}
	p, err := project.Detect(path)
	if err != nil {
		return "", failWith(exitFailed, err)
	}
	return "", failWith(exitFailed, &abi.Error{
		Code: abi.NotFound, Message: "the folder has a creature in " + p.Language.Title + ", but no recipe that runs it",
		Remedy: "write a recipe beside the source, as terrarium new does, or name a recipe in another folder", IDs: map[string]string{"path": path},
	})
}

// recipesIn lists the files of a folder that are parts of a recipe. Files of tests are not.
func recipesIn(dir string) (files []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if name := e.Name(); !e.IsDir() && !strings.HasPrefix(name, ".") && isRecipeFile(name) {
			files = append(files, filepath.Join(dir, name))
		}
	}
	return files, err
}

func isRecipeFile(name string) bool {
	base, ok := strings.CutSuffix(strings.TrimSuffix(name, ".json"), ".hcl")
	return ok && !strings.HasSuffix(base, ".test")
}
