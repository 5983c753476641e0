package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/replay"
	"github.com/seed47132306/terrarium/sqlitestore"
	"github.com/spf13/cobra"
)

// replayFlags holds the flags of the replay command.
type replayFlags struct {
	creatures []string
	module    string
	from      string
	turn      string
	fresh     bool
	all       bool
	cache     cacheFlags
	format    string
}

var errDiffers = errors.New("a turn differs from its record")

func replayCommand(s streams) *cobra.Command {
	f := &replayFlags{}
	cmd := &cobra.Command{
		Use:   "replay DIR [SESSION]",
		Short: "Run recorded turns again and compare their effects",
		Long: `replay runs the recorded turns of a session directory again, each with its delivery,
state and configuration, and compares the effects with the record: messages, outputs,
state, timers, replies, log lines and failures. It shows the first turn that differs,
both as recorded and as replayed. The directory is only read, and may be in use.

With SESSION, replay covers that session, its ancestors and its successors; without,
it covers every session. With --module, the turns of the creatures that --creature
names run on another module.

With --turn, replay runs only that turn, and shows what it did then and what it does
now, side by side: outcome, fuel and all effects, even if nothing differs. The id is that
of a turn_ended or turn_failed event; session events and events show it. --module then
needs no --creature.

Exit codes: 0 no turn differs; 1 a turn differs, or none could be compared; others as
for every command.`,
		Example: `  terrarium replay S
  terrarium replay S --creature census --module new.wasm --all
  terrarium replay S --turn 65e2f1c84ab34f3ea3b6f5a3d1c0e9b7-83 --module new.wasm`,
		Args: arguments(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, s, args) },
	}
	fs := cmd.Flags()
	fs.StringArrayVar(&f.creatures, "creature", nil, "only turns of the creature with this `NAME` or id; * matches any text; may be repeated")
	fs.StringVar(&f.module, "module", "", "run the module in `FILE`, or builtin:NAME, instead of the recorded one")
	fs.StringVar(&f.from, "from", "", "begin after the event with this `CURSOR`")
	fs.StringVar(&f.turn, "turn", "", "run only the turn whose event has this `ID`, and show both sides")
	fs.BoolVar(&f.fresh, "fresh", false, "run every turn on a new instance")
	fs.BoolVar(&f.all, "all", false, "continue after the first turn that differs")
	f.cache.add(fs)
	formatFlag(cmd, &f.format)
	return cmd
}

func (f *replayFlags) run(cmd *cobra.Command, s streams, args []string) error {
	if err := checkFormat(f.format); err != nil {
		return err
	}
	ctx := cmd.Context()
	turn, err := f.oneTurn(cmd.Flags().Changed("turn"))
	switch {
	case err != nil:
		return err
	case f.module != "" && len(f.creatures) == 0 && turn.IsZero():
		return usage("--module needs --creature, to say which creatures run it, or --turn")
	}
	o := terrarium.ReplayOptions{
		Creatures: f.creatures, From: journal.EventCursor(f.from), Fresh: f.fresh, All: f.all, Compiler: compiler(), Translations: translations(),
	}
	if o.CacheDir, o.CacheOptional, err = f.cache.resolve(); err != nil {
		return err
	}
	if f.module != "" {
		if o.Module, err = terrarium.LoadModule(ctx, f.module); err != nil {
			return failWith(exitUsage, err)
		}
	}
	if o.Sessions, err = familyOf(ctx, args[0], optional(args, 1)); err != nil {
		return err
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	if !turn.IsZero() {
		return f.replayTurn(ctx, s, args[0], turn, o)
	}
	report, err := terrarium.Replay(ctx, args[0], o)
	switch {
	case err != nil && ctx.Err() != nil:
		return interrupted(ctx)
	case err != nil:
		return failWith(replayExit(err), err)
	}
	return f.printReport(s, report)
}

// replayExit returns the exit code of an error, which depends on whether the command
// line or the directory is wrong.
func replayExit(err error) int {
	var e *abi.Error
	if errors.As(err, &e) && (e.Op == "replay" && e.Code == abi.NotFound || e.Op == "subscribe") {
		return exitUsage
	}
	return exitSession
}

// familyOf selects a session, its ancestors and its successors or, without a session, all.
func familyOf(ctx context.Context, dir, session string) (only func(*journal.SessionInfo) bool, err error) {
	err = withView(ctx, dir, func(v *sqlitestore.View) error {
		list, err := v.Catalogue(ctx)
		if err != nil {
			return failWith(exitSession, err)
		}
		only, err = (&savedHistory{view: v, names: newNames(journal.SavedGraph{})}).family(ctx, list, session, true)
		return err
	})
	return only, err
}

func (f *replayFlags) printReport(s streams, r *replay.Report) error {
	var err error
	if f.format == "json" {
		err = printJSON(s, r)
	} else {
		err = failWith(exitFailed, f.print(s.out, r))
	}
	if err == nil && !r.Same() && r.Turns+r.Skipped() > 0 {
		return &exit{code: exitFailed, err: errDiffers, shown: true}
	}
	return err
}

func (f *replayFlags) print(w io.Writer, r *replay.Report) error {
	var b strings.Builder
	for i := range r.Differences {
		printDifference(&b, &r.Differences[i])
	}
	if more := r.Differ - len(r.Differences); more > 0 {
		fmt.Fprintf(&b, "… and %s more.\n\n", count(more, "turn"))
	}
	verdict := "and none differs"
	switch {
	case r.Turns == 0:
		verdict = "so there was nothing to compare"
	case r.Differ > 0 && !f.all:
		verdict = "and the last of them differs; --all continues after it"
	case r.Differ == 1:
		verdict = "and one differs"
	case r.Differ > 0:
		verdict = fmt.Sprintf("and %d differ", r.Differ)
	}
	fmt.Fprintf(&b, "%s run again, %s.\n", count(r.Turns, "turn"), verdict)
	for i := range r.Unjudged {
		printUnjudged(&b, &r.Unjudged[i])
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func printUnjudged(w io.Writer, u *replay.Unjudged) {
	name := cmp.Or(u.Name, string(u.Creature)) // pruning may have deleted its name
	fmt.Fprintf(w, "  Not compared: %s of %s, from %s on, which %s", count(u.Turns, "turn"), printable(name), u.First, u.Reason.Text())
	if u.Detail != "" {
		fmt.Fprintf(w, " (%s)", printable(u.Detail))
	}
	fmt.Fprintln(w, ".")
}

// around is the number of equal effects that are shown before and after a difference.
const around = 3

func printDifference(w io.Writer, d *replay.Difference) {
	fmt.Fprintf(w, "Turn %s of %s differs.\n", d.Turn, printable(d.Name))
	fmt.Fprintf(w, "  handled   %s\n", printable(handled(&d.Delivery)))
	if !d.Delivery.Message.IsZero() {
		fmt.Fprintf(w, "  message   %s\n", d.Delivery.Message)
	}
	if d.Attempt > 1 {
		fmt.Fprintf(w, "  attempt   %d\n", d.Attempt)
	}
	fmt.Fprintf(w, "  cursor    %s\n", d.Cursor)
	fmt.Fprintf(w, "  - recorded, + replayed\n")
	changes := d.Diff()
	near := nearChange(changes)
	for i := 0; i < len(changes); i++ {
		left := i
		for left < len(changes) && !near[left] {
			left++
		}
		if left > i {
			fmt.Fprintf(w, "      … %d equal effects\n", left-i)
			i = left - 1
			continue
		}
		fmt.Fprintf(w, "    %c %s\n", changes[i].Sign, printable(changes[i].Effect.String()))
	}
	fmt.Fprintln(w)
}

// nearChange marks the effects to show: those that differ, and a few around them.
func nearChange(changes []replay.Change) []bool {
	near := make([]bool, len(changes))
	for i, c := range changes {
		if c.Sign == ' ' {
			continue
		}
		for j := max(0, i-around); j <= min(len(changes)-1, i+around); j++ {
			near[j] = true
		}
	}
	return near
}

func handled(d *replay.Delivery) string {
	out := string(d.Kind)
	if d.Seq > 0 {
		out += fmt.Sprintf(" %d", d.Seq)
	}
	switch {
	case d.Alias != "":
		out += " on " + d.Alias
	case d.Channel != "":
		out += " in the inbox"
	}
	if d.Sender != "" {
		out += ", from " + d.Sender
	}
	if !d.Message.IsZero() {
		out += ": " + d.Payload.String()
	}
	return out
}
