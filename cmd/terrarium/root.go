package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/internal/near"
	"github.com/seed47132306/terrarium/operations"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// streams are what a process reads and writes.
type streams struct {
	in       io.ReadCloser
	out, err io.Writer
}

// The exit codes of the command.
const (
	exitOK          = 0
	exitFailed      = 1 // the run failed
	exitUsage       = 2 // the command line is wrong
	exitRecipe      = 3 // the recipe is not valid
	exitSession     = 4 // the session directory cannot be used
	exitDeadLetters = 5 // the run finished, but deliveries became dead letters
	exitLeftOpen    = 6 // the shutdown timeout was over before everything had ended
	// After a signal, see exitInterrupted.
)

// exit is an error that decides about the exit code. Its text has been shown
// already if shown is set.
type exit struct {
	code  int
	err   error
	shown bool
}

func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

func failWith(code int, err error) error {
	if err == nil {
		return nil
	}
	return &exit{code: code, err: err}
}

func usage(format string, args ...any) error { return failWith(exitUsage, fmt.Errorf(format, args...)) }

// run carries out one command line and returns the exit code.
func run(ctx context.Context, args []string, s streams) int {
	root := newRoot(s)
	root.SetArgs(args)
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var e *exit
	if !errors.As(err, &e) {
		// What cobra itself finds wrong is the command line.
		e = &exit{code: exitUsage, err: err}
	}
	if !e.shown && e.err != nil {
		showError(s.err, e.err)
		if e.code == exitUsage {
			fmt.Fprintln(s.err, "Run terrarium help, or terrarium COMMAND --help, for how it is used.")
		}
	}
	return e.code
}

// zeroWidthJoiner is a part of words and pictures in texts; names are checked.
const zeroWidthJoiner = '\u200d'

// printable is a text of unknown origin, such as a creature's log line, without
// what a terminal would obey rather than show.
func printable(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError:
			_, size := utf8.DecodeRuneInString(s[i:])
			if size == 1 {
				fmt.Fprintf(&b, "\\x%02x", s[i])
				continue
			}
			b.WriteRune(r)
		case abi.Deceptive(r) && r != '\n' && r != '\t' && r != zeroWidthJoiner:
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// text is the output for a text with parts of unknown origin, such as what the files of a
// session directory say.
func (s streams) text() io.Writer { return printableWriter{s.out} }

// printableWriter writes what is printable of texts that it is given as a whole.
type printableWriter struct{ io.Writer }

func (w printableWriter) Write(text []byte) (int, error) {
	if _, err := io.WriteString(w.Writer, printable(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// showError prints an error with its ids and its remedy on lines of their own.
func showError(w io.Writer, err error) {
	r := operations.NewErrorRecord(err)
	fmt.Fprintln(w, "Error:", printable(r.Message))
	var e *abi.Error
	if errors.As(err, &e) && len(e.IDs) > 0 {
		fmt.Fprintln(w, " ", printable(strings.Join(e.IDList(), ", ")))
	}
	if r.Remedy != "" {
		fmt.Fprintln(w, "  Remedy:", printable(r.Remedy))
	}
}

func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "terrarium",
		Short: "Run recipes of WebAssembly creatures that talk over channels",
		Long: `terrarium runs creatures: sandboxed WebAssembly modules that talk over named
channels. A recipe says which creatures exist and what they are joined by.

Exit codes: 0 ok; 1 the run failed; 2 the command line is wrong; 3 the recipe
is not valid; 4 the session directory cannot be used, or a store in it cannot be
read; 5 the run finished, but deliveries became dead letters; 6 not everything
had ended when the shutdown timeout was over; 129, 130, 143 ended cleanly by
SIGHUP, SIGINT or SIGTERM.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(wrongFlag)
	root.AddCommand(runCommand(s), resumeCommand(s), validateCommand(s), planCommand(s), fmtCommand(s), consoleCommand(s), testCommand(s), execCommand(s), eventsCommand(s), graphCommand(s),
		replayCommand(s), sessionCommand(s), packCommand(s), versionCommand(s), policiesCommand(s), compilerCommand(s))
	return root
}

// wrongFlag suggests a flag for one that a command does not have.
func wrongFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return err
	}
	name := unknown.GetSpecifiedName()
	best, distance := "", len(name)/3+2
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if d := near.Distance(name, f.Name); !f.Hidden && d < distance && d < len(f.Name) {
			best, distance = f.Name, d
		}
	})
	if best == "" {
		return err
	}
	return usage("%w: did you mean --%s?", err, best)
}

// arguments checks how many arguments a command has.
func arguments(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usage("something is missing; it is used as: %s", cmd.UseLine())
		case len(args) > most:
			return usage("%s is one argument too many; it is used as: %s", args[most], cmd.UseLine())
		}
		return nil
	}
}

// compiling reports whether an error is one of compiling a module.
func compiling(err error) bool {
	for e := (*abi.Error)(nil); errors.As(err, &e); err = e.Err {
		if e.Op == "compile" {
			return true
		}
	}
	return false
}

// verbosity makes the logger of the engine's own messages.
func verbosity(w io.Writer, verbose bool) *slog.Logger {
	level := slog.LevelWarn
	if verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// sessionExit says whether an error of opening an engine is about its session
// directory. That is the one argument which only opening it can check.
func sessionExit(err error) error {
	switch abi.CodeOf(err) {
	case abi.OK:
		return nil
	case abi.Storage, abi.UnknownOutcome, abi.Unavailable, abi.Unsupported, abi.InvalidArgument:
		return failWith(exitSession, err)
	}
	return failWith(exitFailed, err)
}

// applyExit says whether an error of applying a recipe is about the stores of
// the session directory.
func applyExit(ctx context.Context, err error) error {
	var signalled *interruption
	if e := (*exit)(nil); errors.As(err, &e) {
		return err // which has been shown
	}
	switch abi.CodeOf(err) {
	case abi.Stopped: // while it compiled a module, for example
		if errors.As(context.Cause(ctx), &signalled) && errors.Is(err, context.Canceled) {
			return interrupted(ctx)
		}
	case abi.Unavailable: // the process that compiled a module was killed, for example
		if compiling(err) {
			return failWith(exitFailed, err)
		}
	case abi.InvalidArgument:
		return failWith(exitFailed, err)
	case abi.Conflict: // with what the directory has
		return failWith(exitSession, err)
	}
	return sessionExit(err)
}
