package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/recipes"
	"github.com/seed47132306/terrarium/replay"
)

// The kinds of events that dev reports.
const (
	eventBuilt       = "built"        // a module was built, or another tool has made it
	eventBuildFailed = "build_failed" // a module could not be built
	eventChecked     = "checked"      // recorded turns were run on a new module
	eventRefused     = "refused"      // a recipe or a module is not used
	eventWarned      = "warned"       // the recipe has warnings
	eventApplied     = "applied"      // the recipe runs as it is now, or a new module
	eventWaiting     = "waiting"      // nothing runs until a file changes
)

// devEvent is what dev reports. Its JSON form is for programs.
type devEvent struct {
	Event       string                  `json:"event"`
	Recipe      string                  `json:"recipe,omitempty"`
	Module      string                  `json:"module,omitempty"`
	Language    string                  `json:"language,omitempty"`
	Bytes       int                     `json:"bytes,omitempty"`
	Unchanged   bool                    `json:"unchanged,omitempty"` // the same bytes as before
	Output      string                  `json:"output,omitempty"`    // of the compiler
	Creature    string                  `json:"creature,omitempty"`
	Turns       int                     `json:"turns,omitempty"`
	Differ      int                     `json:"differ,omitempty"`
	Skipped     int                     `json:"skipped,omitempty"`
	Difference  *replay.Difference      `json:"difference,omitempty"` // the first
	Created     []string                `json:"created,omitempty"`    // addresses
	Changed     []string                `json:"changed,omitempty"`    // those that got another module or settings
	Removed     []string                `json:"removed,omitempty"`
	Workers     []string                `json:"workers,omitempty"`     // names of creatures without an address that got another module
	Redelivered int                     `json:"redelivered,omitempty"` // dead letters
	Error       *operations.ErrorRecord `json:"error,omitempty"`
	Diagnostics recipes.Diagnostics     `json:"diagnostics,omitempty"`

	cause  error
	report *replay.Report
	keeps  bool // there is an earlier version
	first  bool // the recipe begins to run
}

// tell reports an event.
func (d *developing) tell(ev *devEvent) {
	if ev.cause != nil {
		ev.Error = operations.NewErrorRecord(ev.cause)
	}
	if r := ev.report; r != nil {
		ev.Turns, ev.Differ, ev.Skipped = r.Turns, r.Differ, r.Skipped()
		if len(r.Differences) > 0 {
			ev.Difference = &r.Differences[0]
		}
	}
	switch {
	case d.f.format != "json":
		d.x.report.write(d.text(ev))
	case d.x.printer != nil:
		_ = d.x.printer.note(ev) // the printer's own writes report a closed output
	default:
		_ = encodeLine(d.s.out, ev)
	}
}

// tellOutput shows what a compiler has printed.
func (d *developing) tellOutput(output string) { d.x.report.write(outputText(output)) }

func outputText(output string) string {
	if output == "" {
		return ""
	}
	return strings.TrimSuffix(printable(output), "\n") + "\n"
}

// text is an event for people.
func (d *developing) text(ev *devEvent) string {
	var b strings.Builder
	name := printable(filepath.Base(ev.Module))
	switch ev.Event {
	case eventBuilt:
		b.WriteString(outputText(ev.Output))
		switch {
		case d.f.quiet:
		case ev.Unchanged:
			fmt.Fprintf(&b, "Built %s: the module is the same as before.\n", name)
		case ev.Language == "":
			fmt.Fprintf(&b, "Read %s: %s.\n", name, humanize.IBytes(uint64(ev.Bytes)))
		default:
			fmt.Fprintf(&b, "Built %s from %s: %s.\n", name, ev.Language, humanize.IBytes(uint64(ev.Bytes)))
		}
	case eventBuildFailed:
		b.WriteString(outputText(ev.Output))
		showError(&b, ev.cause)
		if ev.keeps {
			fmt.Fprintf(&b, "%s was not built. The last good module stays in use.\n", name)
		}
	case eventChecked:
		checkedText(&b, ev)
	case eventRefused, eventWarned:
		if width, colour := terminal(d.s.err); len(ev.Diagnostics) > 0 {
			_ = recipes.WriteText(&b, ev.Diagnostics, width, colour) // writing to a builder never fails
		}
		if ev.cause != nil {
			showError(&b, ev.cause)
		}
		if ev.Event == eventRefused && d.last != nil {
			b.WriteString("Everything else continues as before.\n")
		}
	case eventApplied:
		d.appliedText(&b, ev)
	case eventWaiting:
		b.WriteString("Nothing runs yet: waiting for a change of the files.\n")
	}
	return b.String()
}

func checkedText(b *strings.Builder, ev *devEvent) {
	if ev.Difference != nil {
		printDifference(b, ev.Difference)
	}
	name := printable(ev.Creature)
	switch {
	case ev.Turns == 0 && ev.Skipped == 0:
		fmt.Fprintf(b, "%s has no recorded turns.\n", name)
	case ev.Turns == 0:
		fmt.Fprintf(b, "None of the recorded turns of %s could be compared.\n", name)
	case ev.Differ == 0:
		fmt.Fprintf(b, "%s of %s run on the new module, and none differs.\n", count(ev.Turns, "recorded turn"), name)
	default:
		fmt.Fprintf(b, "%s of %s run on the new module, and %s.\n", count(ev.Turns, "recorded turn"), name, differing(ev.Differ))
	}
	for i := range ev.report.Unjudged {
		printUnjudged(b, &ev.report.Unjudged[i])
	}
}

func differing(n int) string {
	if n == 1 {
		return "one differs"
	}
	return humanize.Comma(int64(n)) + " differ"
}

func (d *developing) appliedText(b *strings.Builder, ev *devEvent) {
	if d.f.quiet {
		return
	}
	if ev.first {
		fmt.Fprintf(b, "Running %s. It follows the files; press Ctrl-C to stop.\n", printable(ev.Recipe))
		return
	}
	for _, part := range []struct {
		verb      string
		addresses []string
	}{{"Changed", ev.Changed}, {"Created", ev.Created}, {"Removed", ev.Removed}, {"Changed the workers", ev.Workers}} {
		if len(part.addresses) > 0 {
			fmt.Fprintf(b, "%s %s.\n", part.verb, printable(strings.Join(part.addresses, ", ")))
		}
	}
	if ev.Redelivered > 0 {
		fmt.Fprintf(b, "Delivered %s again.\n", count(ev.Redelivered, "dead letter"))
	}
}

// ends reports whether an error ends the command, which then shows the error. That is so if
// nothing runs yet, and either no change of a file would help or the command does not wait
// for one.
func (d *developing) ends(err error) bool {
	return d.last == nil && (d.f.exitWhenIdle || isFinal(err))
}

// refuse shows why something is not used, and returns an error with an exit code.
func (d *developing) refuse(ctx context.Context, err error, module string) error {
	if ctx.Err() != nil {
		return err
	}
	coded := applyExit(ctx, err)
	if d.ends(coded) {
		return coded
	}
	d.tell(&devEvent{Event: eventRefused, Module: module, cause: err})
	var e *exit
	if errors.As(coded, &e) {
		return &exit{code: e.code, err: err, shown: true}
	}
	return coded
}

// refuseRecipe shows what is wrong with the recipe or, if one is named, with a module in it.
func (d *developing) refuseRecipe(diags recipes.Diagnostics, module string) error {
	d.tell(&devEvent{Event: eventRefused, Recipe: d.path, Module: module, Diagnostics: diags})
	return &exit{code: exitRecipe, err: errRecipe, shown: true}
}

// writeModule replaces the file of a module atomically.
func writeModule(path string, wasm []byte) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return os.WriteFile(path, wasm, 0o644)
	}
	return replaceFile(path, wasm, 0o644)
}
