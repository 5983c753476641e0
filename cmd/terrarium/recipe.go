package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/deploy"
	"github.com/seed47132306/terrarium/internal/gcpace"
	"github.com/seed47132306/terrarium/recipes"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// recipeFlags holds the flags of every command that reads a recipe.
type recipeFlags struct {
	tests    bool // check test blocks too
	vars     []string
	varFiles []string
	as       string // file in place of which standard input is read
	unsaved  map[string][]byte
}

func (f *recipeFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.vars, "var", nil, "value of a variable, as `NAME=VALUE`; may be repeated")
	cmd.Flags().StringArrayVar(&f.varFiles, "var-file", nil, "`FILE` with values of variables; may be repeated")
}

// addAs adds the flag of commands that can read the recipe, or a file of it, from standard
// input.
func (f *recipeFlags) addAs(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.as, "as", "", "read standard input in place of `FILE`, a file of the recipe that need not exist (default for the recipe -: "+unnamedRecipe+")")
}

// unnamedRecipe is the file of a recipe that is only in standard input.
const unnamedRecipe = "stdin.hcl"

// fromInput returns the path of the recipe that a command reads. If the command line names
// standard input, it reads that.
func (f *recipeFlags) fromInput(s streams, path string) (string, error) {
	if path == standardInput {
		f.as = cmp.Or(f.as, unnamedRecipe)
		path = f.as
	}
	if f.as == "" {
		return path, nil
	}
	text, err := io.ReadAll(io.LimitReader(s.in, maxFormatted+1)) // the loader refuses one that is too large
	if err != nil {
		return "", failWith(exitFailed, fmt.Errorf("reading standard input: %w", err))
	}
	f.unsaved = map[string][]byte{f.as: text}
	return path, nil
}

func (f *recipeFlags) options() (terrarium.RecipeOptions, error) {
	o := terrarium.RecipeOptions{VarFiles: f.varFiles, Env: os.Environ(), Vars: map[string]string{}, PolicyProcess: policyProcess(), Tests: f.tests, Unsaved: f.unsaved, ReadsUnsaved: true}
	for _, v := range f.vars {
		name, value, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			return o, usage("--var %s: write it as NAME=VALUE", v)
		}
		o.Vars[name] = value
	}
	return o, nil
}

var errRecipe = errors.New("the recipe is not valid")

// load reads a recipe and shows its errors and warnings.
func (f *recipeFlags) load(ctx context.Context, s streams, path string) (*recipes.Recipe, error) {
	o, err := f.options()
	if err != nil {
		return nil, err
	}
	r, diags := loadRecipe(ctx, path, o)
	return r, showFindings(s, diags)
}

// loadRecipe loads a recipe. Nearly everything that it allocates lives until it is
// done, so it makes the garbage collector run less often meanwhile. Otherwise
// collecting would take a third of the time.
func loadRecipe(ctx context.Context, path string, o terrarium.RecipeOptions) (*recipes.Recipe, recipes.Diagnostics) {
	const percent = 400
	before := debug.SetGCPercent(percent)
	if os.Getenv("GOGC") == "" {
		before = gcpace.Usual // what collectLess had set was for a smaller heap
	}
	defer debug.SetGCPercent(before)
	return terrarium.LoadRecipe(ctx, path, o)
}

// explained shows an error of applying a recipe at the place in the recipe that caused
// it. The recipe does not cause interruptions.
func explained(ctx context.Context, s streams, r *recipes.Recipe, err error) error {
	if ctx.Err() != nil {
		return err
	}
	diags := r.Explain(err)
	if len(diags) == 0 {
		return err
	}
	if werr := showFindings(s, diags); !errors.Is(werr, errRecipe) {
		return werr
	}
	var e *exit
	if err = applyExit(ctx, err); errors.As(err, &e) {
		e.shown = true
	}
	return err
}

// showFindings shows errors and warnings about a recipe. It returns an error if there
// are errors among them.
func showFindings(s streams, diags recipes.Diagnostics) error {
	if len(diags) > 0 {
		width, colour := terminal(s.err)
		if err := recipes.WriteText(s.err, diags, width, colour); err != nil {
			return failWith(exitFailed, err)
		}
	}
	if diags.HasErrors() {
		return &exit{code: exitRecipe, err: errRecipe, shown: true}
	}
	return nil
}

// terminal returns the width of w and whether it shows colours.
func terminal(w io.Writer) (width int, colour bool) {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 100, false
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil || width <= 0 {
		width = 100
	}
	return width, os.Getenv("NO_COLOR") == ""
}

func validateCommand(s streams) *cobra.Command {
	f := recipeFlags{tests: true}
	var asJSON bool
	var format string
	cmd := &cobra.Command{
		Use:   "validate RECIPE",
		Short: "Check a recipe and its modules without running it",
		Long: `validate reads and evaluates a recipe, checks its modules, and shows all errors and
warnings.

The recipe - is standard input, for example the text in an editor. With --as, the text
is checked as if it were in a file: relative paths start from the folder of that file.
If the file is one of several, name the recipe's folder, and the file with --as.`,
		Example: `  terrarium validate team.hcl -o json
  terrarium validate - --as team.hcl -o json < buffer
  terrarium validate team --as team/channels.hcl < buffer`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(format); err != nil {
				return err
			}
			path, err := f.fromInput(s, args[0])
			if err != nil {
				return err
			}
			if asJSON || format == "json" {
				return f.validateJSON(cmd.Context(), s, path)
			}
			r, err := f.load(cmd.Context(), s, path)
			if err != nil {
				return err
			}
			d := r.Deployment()
			_, err = fmt.Fprintf(s.out, "%s is valid: %s, %s%s.\n", d.Name,
				count(len(d.Creatures), "creature"), count(len(d.Channels), "channel"), spawnable(d))
			return failWith(exitFailed, err)
		},
	}
	f.add(cmd)
	f.addAs(cmd)
	cmd.Flags().StringVarP(&format, "format", "o", "text", "format of errors and warnings: text or json")
	cmd.Flags().BoolVar(&asJSON, "json", false, "the same as -o json")
	_ = cmd.Flags().MarkHidden("json") // its earlier name
	return cmd
}

// spawnable lists the species of a deployment that may be spawned.
func spawnable(d *deploy.Deployment) string {
	var names []string
	for i := range d.Species {
		if s := &d.Species[i]; s.Spawnable > 0 {
			names = append(names, fmt.Sprintf("%s (%s)", s.Name, humanize.Comma(int64(s.Spawnable))))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; may be spawned: " + strings.Join(names, ", ")
}

func (f *recipeFlags) validateJSON(ctx context.Context, s streams, path string) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	_, diags := loadRecipe(ctx, path, o)
	if err := recipes.WriteJSON(s.out, diags); err != nil {
		return failWith(exitFailed, err)
	}
	if diags.HasErrors() {
		return &exit{code: exitRecipe, err: errRecipe, shown: true}
	}
	return nil
}

// count returns a number with its noun.
func count[N int | int64 | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%s %ss", humanize.Comma(int64(n)), noun)
}
