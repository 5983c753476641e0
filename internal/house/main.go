// Command house measures how a Go module is divided: by package, how long it is, how
// much of it cannot be separated, how large its largest types and functions are, and
// how many comments state what the compiler could check.
//
//	go run ./internal/house             this module
//	go run ./internal/house PATTERN…    other packages, as go list names them
//
// Tests are not measured. What the columns mean:
//
// lines are the lines of the package's Go files, with comments and blank lines.
//
// decl is the number of declarations: functions, methods, types, and each line of
// a const or var block that has names of its own.
//
// knot is the largest part of the package that Go does not allow to be divided between
// packages. A declaration refers to another if its code uses the other's name, a method or a
// field of it. Methods count as part of their type, because they must be declared beside it.
// Declarations that reach each other along such references cannot be in different packages,
// because imports may not form a circle. So the knot is the largest strongly connected
// component of the references, by lines. share is its part of the lines of all declarations
// with their comments, and in knot is its number of declarations.
//
// methods is the number of methods of the type that has the most.
//
// fields is the number of fields of the struct that has the most. A struct that is embedded or
// nested in another counts there as one field, and its own fields are counted by themselves:
// grouping fields lowers this number.
//
// types is the number of exported types, with aliases.
//
// locks is the number of comments that say that a lock is held, as "The caller
// holds mu". A parameter of a type that only the holder of the lock can have says the
// same, and the compiler checks it. The number after the slash is of those that
// mean the mutation lock. A comment that says which lock guards a field is not counted.
//
// long is the number of functions of more than 80 lines.
//
// The lines below the table list what is above the goals. The test of this package holds each
// of these at a ceiling, so that it can only get better.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]...); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

// run measures packages, and prints a table of them, the longest first, and what is
// above the goals.
func run(ctx context.Context, out io.Writer, patterns ...string) error {
	if len(patterns) == 0 {
		patterns = []string{module + "/..."}
	}
	list, err := measure(ctx, "", patterns...)
	if err != nil {
		return err
	}
	w := newTable(out, "package", "lines", "decl", "knot", "share", "in knot", "methods", "fields", "types", "locks", "long")
	for _, r := range list {
		w.AppendRow(table.Row{
			room(r.path), r.lines, r.declarations, r.knot.lines, fmt.Sprintf("%d %%", r.share()), r.knot.declarations,
			largest(r.methods), largest(r.fields), r.exported, fmt.Sprintf("%d/%d", r.locks, r.mutationLocks), r.long,
		})
	}
	w.Render()
	w = newTable(out, "above its goal", "of", "is", "goal")
	for _, a := range above(list) {
		w.AppendRow(table.Row{a.measure, a.of, a.value, a.goal})
	}
	w.Render()
	return nil
}

func newTable(out io.Writer, header ...any) table.Writer {
	w := table.NewWriter()
	w.SetOutputMirror(out)
	w.SetStyle(table.StyleLight)
	w.Style().Format.Header = text.FormatDefault
	w.AppendHeader(header)
	return w
}
