package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/internal/plainly"
	"github.com/seed47132306/terrarium/recipes"
)

// formatting is one run of the fmt command.
type formatting struct {
	s                  streams
	write, check, diff bool
	differ             bool // some file is not formatted
	fault              int  // exit code of the first error that was shown; 0 if there was none
}

func fmtCommand(s streams) *cobra.Command {
	f := &formatting{s: s}
	cmd := &cobra.Command{
		Use:   "fmt FILE|DIR...",
		Short: "Format recipes",
		Long: `fmt prints recipes in the canonical format. The contents of heredocs, such as
scripts, stay as they are. For a directory, fmt formats every .hcl file in it and
below it; - is standard input. Recipes in JSON are not changed.

If a file cannot be formatted, fmt prints the error and formats the others. The exit
code is that of the first error.`,
		Args: arguments(1, 10_000),
		RunE: func(_ *cobra.Command, args []string) error { return f.run(args) },
	}
	fs := cmd.Flags()
	fs.BoolVarP(&f.write, "write", "w", false, "write the files, and print the names of changed files")
	fs.BoolVar(&f.check, "check", false, "print the names of files that would change, and exit with 1 if there are any")
	fs.BoolVar(&f.diff, "diff", false, "print what would change")
	cmd.MarkFlagsMutuallyExclusive("write", "check", "diff")
	return cmd
}

// run formats every file that it can. Errors of single files are shown and
// remembered; run returns an error if nothing more can be shown.
func (f *formatting) run(args []string) error {
	for _, arg := range args {
		if err := f.argument(arg); err != nil {
			return failWith(exitFailed, err)
		}
	}
	switch {
	case f.fault != 0:
		return &exit{code: f.fault, err: errors.New("some files could not be formatted"), shown: true}
	case f.check && f.differ:
		return &exit{code: exitFailed, err: errors.New("some files are not formatted"), shown: true}
	}
	return nil
}

// tell shows an error of one file; the others are still formatted.
func (f *formatting) tell(code int, format string, args ...any) {
	showError(f.s.err, fmt.Errorf(format, args...))
	f.fault = cmp.Or(f.fault, code)
}

// argument formats a file, standard input, or all recipes below a directory.
func (f *formatting) argument(arg string) error {
	if arg == "-" {
		src, err := io.ReadAll(f.s.in)
		if err != nil {
			f.tell(exitFailed, "reading standard input: %w", err)
			return nil
		}
		return f.input(src)
	}
	info, err := os.Stat(arg)
	switch {
	case err != nil:
		f.tell(exitUsage, "%w", err)
	case info.IsDir():
		return f.folder(arg)
	case !strings.HasSuffix(arg, ".hcl") && !strings.HasSuffix(arg, ".json"):
		f.tell(exitUsage, "%s is not a recipe: the name of a recipe ends in .hcl", arg)
	default:
		return f.file(arg)
	}
	return nil
}

// input formats text from standard input.
func (f *formatting) input(src []byte) error {
	name := "standard input"
	if strings.HasPrefix(strings.TrimSpace(string(src)), "{") { // HCL's native syntax never does
		fmt.Fprintf(f.s.err, "%s is JSON and was not formatted.\n", name)
		name += ".json"
	}
	return f.text(name, src, nil)
}

// folder formats all recipes in and below a directory.
func (f *formatting) folder(arg string) error {
	found := false
	err := filepath.WalkDir(arg, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			f.tell(exitFailed, "%w", err)
			found = true // there may be recipes that cannot be seen
		case e.IsDir() && strings.HasPrefix(e.Name(), ".") && path != arg:
			return fs.SkipDir
		case e.Type().IsRegular() && strings.HasSuffix(e.Name(), ".hcl") && !strings.HasPrefix(e.Name(), "."):
			found = true
			return f.file(path)
		}
		return nil
	})
	if err == nil && !found {
		fmt.Fprintf(f.s.err, "No .hcl files found in %s.\n", arg)
	}
	return err
}

// maxFormatted is the largest file in bytes; reading recipes has the same limit.
const maxFormatted = 1 << 20

func (f *formatting) file(path string) error {
	if strings.HasSuffix(path, ".json") {
		fmt.Fprintf(f.s.err, "%s is JSON and was not formatted.\n", path)
		return nil
	}
	info, err := os.Stat(path)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxFormatted) {
		f.tell(exitUsage, "%s is not a regular file of at most %d bytes", path, maxFormatted)
		return nil
	}
	var src []byte
	if err == nil {
		src, err = os.ReadFile(path)
	}
	if err != nil {
		f.tell(exitFailed, "%w", err)
		return nil
	}
	return f.text(path, src, info)
}

// text formats one text. If info is nil, the text is not from a file.
func (f *formatting) text(name string, src []byte, info fs.FileInfo) error {
	out, diags := recipes.Format(name, src)
	if diags.HasErrors() {
		f.fault = cmp.Or(f.fault, exitRecipe)
		width, colour := terminal(f.s.err)
		return recipes.WriteText(f.s.err, diags, width, colour)
	}
	changed := !bytes.Equal(src, out)
	f.differ = f.differ || changed
	var err error
	switch {
	case f.check && changed:
		_, err = fmt.Fprintln(f.s.out, name)
	case f.diff:
		_, err = f.s.out.Write(diff.Diff(name, src, name+" (formatted)", out))
	case f.write && changed && info != nil:
		if failed := replaceFile(name, out, info.Mode()); failed != nil {
			f.tell(exitFailed, "%w", failed)
			return nil
		}
		_, err = fmt.Fprintln(f.s.out, name)
	case f.write && info == nil, !f.write && !f.check:
		_, err = f.s.out.Write(out)
	}
	return err
}

// replaceFile replaces the text of a file atomically.
func replaceFile(path string, text []byte, mode fs.FileMode) (err error) {
	// Replace the target of a symbolic link, not the link.
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return err
	}
	return writeWhole(path, text, mode)
}

// writeWhole writes a file atomically: it has its old text, or all of the new one.
func writeWhole(path string, text []byte, mode fs.FileMode) (err error) {
	h, err := os.CreateTemp(filepath.Dir(path), ".terrarium-*")
	if err != nil {
		return unwritten(path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(h.Name()))
		}
	}()
	_, err = h.Write(text)
	err = errors.Join(err, h.Chmod(mode.Perm()), h.Close())
	if err != nil {
		return err
	}
	return os.Rename(h.Name(), path)
}

// unwritten returns the error for a file that cannot be written, without the name of a
// temporary file.
func unwritten(path string, err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		err = of.Err
	}
	remedy := "name a file that may be written"
	if errors.Is(err, fs.ErrNotExist) {
		remedy = "make the folder first, or name another file"
		err = errors.New(plainly.Missing(filepath.Dir(path)))
	}
	return &abi.Error{Code: abi.InvalidArgument, Message: path + " cannot be written", Remedy: remedy, Err: err, IDs: map[string]string{"path": path}}
}
