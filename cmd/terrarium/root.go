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

// streams holds the standard streams of a process.
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
	exitLeftOpen    = 6 // the shutdown timeout expired before everything had ended
	exitChanges     = 7 // with --detailed-exitcode: the plan has changes
	// After a signal, see exitInterrupted.
)

// exit is an error with an exit code. If shown is set, its text has already been
// shown.
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

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, s streams) int {
	root := newRoot(s)
	root.SetArgs(args)
	suggestNear(root, args)
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var e *exit
	if !errors.As(err, &e) {
		// An error of cobra itself is an error of the command line.
		e = &exit{code: exitUsage, err: err}
	}
	if !e.shown && e.err != nil {
		showError(s.err, e.err)
		if e.code == exitUsage {
			fmt.Fprintln(s.err, "For usage, run terrarium help or terrarium COMMAND --help.")
		}
	}
	return e.code
}

// zeroWidthJoiner is part of words and emoji in texts, so it is shown. Names are
// checked elsewhere.
const zeroWidthJoiner = '\u200d'

// printable returns an untrusted text, such as a creature's log line, without the
// characters that would control a terminal.
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

// text is the output for untrusted text, such as the contents of a session directory.
func (s streams) text() io.Writer { return printableWriter{s.out} }

// printableWriter writes the printable part of each text. A text must arrive in one call.
type printableWriter struct{ io.Writer }

func (w printableWriter) Write(text []byte) (int, error) {
	if _, err := io.WriteString(w.Writer, printable(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// showError prints an error, and its ids and remedy on lines of their own.
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
channels. A recipe declares which creatures exist and which channels connect them.

Exit codes: 0 ok; 1 the run failed; 2 the command line is not valid; 3 the recipe
is not valid; 4 the session directory cannot be used, a store in it cannot be read,
or conformance found a breach; 5 the run finished, but deliveries became dead
letters; 6 the shutdown timeout expired before everything had ended; 7 with
--detailed-exitcode, the plan has changes; 129, 130, 143 ended cleanly by SIGHUP,
SIGINT or SIGTERM.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.DisableDefaultCmd = true // completionCommand takes its place
	root.SetFlagErrorFunc(wrongFlag)
	root.AddCommand(newCommand(s), buildCommand(s), devCommand(s), runCommand(s), resumeCommand(s), validateCommand(s), planCommand(s), applyCommand(s), fmtCommand(s), schemaCommand(s), lspCommand(s), consoleCommand(s), testCommand(s), execCommand(s), serveCommand(s), statusCommand(s), topCommand(s), sendCommand(s), requestCommand(s), sessionDeadLettersCommand(s), sessionRedeliverCommand(s), replaceCommand(s), policiesCommand(s), approvalsCommand(s), approveCommand(s), denyCommand(s), loginCommand(s), eventsCommand(s), graphCommand(s),
		replayCommand(s), sessionCommand(s), packCommand(s), inspectCommand(s), translateCommand(s), callCommand(s), conformanceCommand(s), doctorCommand(s), versionCommand(s), servePoliciesCommand(s), compilerCommand(s), completionCommand(s), manCommand(s))
	complement(root)
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err == nil {
		help.Run, help.RunE = nil, func(_ *cobra.Command, args []string) error { return showHelp(root, args) }
	}
	return root
}

// suggestNear bounds how much a suggestion may differ from the first word of a command line: with
// two changes, a word of three letters is another word.
func suggestNear(root *cobra.Command, args []string) {
	if len(args) > 0 && len(args[0]) <= 3 {
		root.SuggestionsMinimumDistance = 1
	}
}

// showHelp shows the help of a command.
func showHelp(root *cobra.Command, args []string) error {
	suggestNear(root, args)
	cmd, rest, err := root.Find(args)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("unknown command %s", strings.Join(args, " "))
		cmd.SuggestionsMinimumDistance = 2
		if near := cmd.SuggestionsFor(rest[0]); len(near) > 0 {
			err = fmt.Errorf("%w: did you mean %s?", err, near[0])
		}
	}
	if err != nil {
		return failWith(exitUsage, err)
	}
	return cmd.Help()
}

// wrongFlag suggests a flag in place of an unknown one.
func wrongFlag(cmd *cobra.Command, err error) error {
	var unfit *pflag.InvalidValueError
	if errors.As(err, &unfit) {
		if wanted := wantedValues[unfit.GetFlag().Value.Type()]; wanted != "" {
			return usage("--%s %s: use %s", unfit.GetFlag().Name, unfit.GetValue(), wanted)
		}
		return err
	}
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

// wantedValues are the values of flags, by their types.
var wantedValues = map[string]string{
	"int": "a whole number", "int64": "a whole number", "uint32": "a whole number", "uint64": "a whole number",
	"float64": "a number", "bool": "true or false", "duration": "a duration such as 30s, 5m or 720h",
}

// arguments checks the number of arguments.
func arguments(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usage("an argument is missing; usage: %s", cmd.UseLine())
		case len(args) > most:
			return usage("unexpected argument %s; usage: %s", args[most], cmd.UseLine())
		}
		return nil
	}
}

// compiling reports whether an error occurred while a module was compiled.
func compiling(err error) bool {
	for e := (*abi.Error)(nil); errors.As(err, &e); err = e.Err {
		if e.Op == "compile" {
			return true
		}
	}
	return false
}

// verbosity returns the logger of the engine's own messages.
func verbosity(w io.Writer, verbose bool) *slog.Logger {
	level := slog.LevelWarn
	if verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// sessionExit adds an exit code to an error of opening an engine. Most such errors are
// about the session directory, the one argument that only opening can check.
func sessionExit(err error) error {
	switch abi.CodeOf(err) {
	case abi.OK:
		return nil
	case abi.Storage, abi.UnknownOutcome, abi.Unavailable, abi.Unsupported, abi.InvalidArgument:
		return failWith(exitSession, err)
	}
	return failWith(exitFailed, err)
}

// applyExit adds an exit code to an error of applying a recipe, which may be about the
// stores of the session directory.
func applyExit(ctx context.Context, err error) error {
	var signalled *interruption
	if e := (*exit)(nil); errors.As(err, &e) {
		return err // already shown
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
