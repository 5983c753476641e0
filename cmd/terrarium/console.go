package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/recipes"
)

func consoleCommand(s streams) *cobra.Command {
	f := &recipeFlags{}
	cmd := &cobra.Command{
		Use:   "console RECIPE",
		Short: "Evaluate expressions in the context of a recipe",
		Long: `console reads one expression per line and prints its value. An expression can use
everything that the recipe can refer to: variables, local values, channels,
creatures and functions. Sensitive values are not shown. If an expression is wrong,
console prints the error as validate would, and reads the next line. The recipe's
modules do not have to exist.

On a terminal, Ctrl-D ends the console with exit code 0. Otherwise it ends with the
input, with exit code 1 if an expression was wrong.`,
		Example: `  terrarium console team.hcl
  echo 'keys(var.reviewers)' | terrarium console team.hcl --var-file big.hcl`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.console(cmd.Context(), s, args[0]) },
	}
	f.add(cmd)
	return cmd
}

func (f *recipeFlags) console(ctx context.Context, s streams, path string) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	c, diags := terrarium.OpenConsole(ctx, path, o)
	if c != nil {
		defer c.Close()
	}
	if err := showFindings(s, diags); err != nil {
		return err
	}
	d := dialogue{s: s, console: c}
	if file, ok := s.in.(*os.File); ok {
		d.terminal = term.IsTerminal(int(file.Fd()))
	}
	return d.run()
}

// dialogue is one run of the console command.
type dialogue struct {
	s        streams
	console  *recipes.Console
	terminal bool // expressions are typed
	faults   int
}

// maxTyped is the longest line in bytes; recipe files have the same limit.
const maxTyped = 1 << 20

func (d *dialogue) run() error {
	in := bufio.NewScanner(d.s.in)
	in.Buffer(nil, maxTyped)
	for line := 1; d.next(in); line++ {
		if err := d.evaluate(line, in.Text()); err != nil {
			return err
		}
	}
	switch err := in.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return failWith(exitFailed, fmt.Errorf("a line of standard input is longer than %d bytes", maxTyped))
	case err != nil:
		return failWith(exitFailed, fmt.Errorf("reading standard input: %w", err))
	case d.faults > 0 && !d.terminal:
		return &exit{code: exitFailed, err: errors.New("some expressions are wrong"), shown: true}
	}
	return nil
}

// next reads a line. On a terminal it shows a prompt first.
func (d *dialogue) next(in *bufio.Scanner) bool {
	if d.terminal {
		fmt.Fprint(d.s.err, "> ")
	}
	more := in.Scan()
	if !more && d.terminal {
		fmt.Fprintln(d.s.err) // end the line of the unanswered prompt
	}
	return more
}

func (d *dialogue) evaluate(line int, text string) error {
	value, diags := d.console.Evaluate(line, text)
	if value != "" {
		if _, err := fmt.Fprintln(d.s.out, printable(value)); err != nil {
			return failWith(exitFailed, outputError(err))
		}
	}
	err := showFindings(d.s, diags)
	if errors.Is(err, errRecipe) {
		d.faults++
		return nil
	}
	return err
}
