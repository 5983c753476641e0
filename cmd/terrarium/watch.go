package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/operations"
	"github.com/seed47132306/terrarium/sqlitestore"
	"github.com/spf13/cobra"
)

// watchFlags holds the flags of events and, except for run, of session events.
type watchFlags struct {
	run       runFlags
	kinds     []string
	creatures []string
	channels  []string
	graphs    []string
	after     string
	since     string
	until     string
	limit     int
	newest    bool
	follow    bool
	format    string
}

func eventsCommand(s streams) *cobra.Command {
	f := &watchFlags{}
	cmd := &cobra.Command{
		Use:   "events RECIPE | DIR [SESSION]",
		Short: "Show the events of a run or of a session directory",
		Long: `events shows events, one per line. For a recipe, it runs the recipe as run does and
shows its events. For a session directory, it shows the logged events as session
events does.

With -o json, every event has a cursor. Pass it to --after to continue after that
event, even after merges, splits and restarts.`,
		Example: `  terrarium events examples/quickstart --input lines=examples/quickstart/lines.txt --exit-when-idle
  terrarium events S --kind dead_letter --follow`,
		Args: arguments(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return f.showEvents(cmd, s, args) },
	}
	f.run.add(cmd)
	f.add(cmd)
	return cmd
}

func sessionEventsCommand(s streams) *cobra.Command {
	f := &watchFlags{}
	cmd := &cobra.Command{
		Use:   "events DIR [SESSION]",
		Short: "Show the events of a session directory",
		Long: `events shows the logged events of a session directory, one per line and each once.
With SESSION it shows the history of that session, which includes the histories of
its ancestors. With --follow it continues with new events, including those of its
successors. Another process may be using the directory.

With -o json, every event has a cursor. Pass it to --after to continue after that
event, even after merges, splits and restarts.`,
		Example: `  terrarium session events S --kind dead_letter --follow
  terrarium session events S --newest --limit 20
  terrarium session events S --since 1h --creature census`,
		Args: arguments(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			kinds, err := f.checkFlags("session events")
			if err != nil {
				return err
			}
			return withView(cmd.Context(), args[0], func(v *sqlitestore.View) error {
				return f.saved(cmd, s, v, optional(args, 1), kinds)
			})
		},
	}
	f.add(cmd)
	return cmd
}

// add adds the flags that select events.
func (f *watchFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringSliceVar(&f.kinds, "kind", nil, "only events of `KIND`; may be repeated")
	fs.StringArrayVar(&f.creatures, "creature", nil, "only events about the creature with this `NAME` or id; may be repeated")
	fs.StringArrayVar(&f.channels, "channel", nil, "only events of the channel with this `NAME` or id; may be repeated")
	fs.StringArrayVar(&f.graphs, "graph", nil, "only events of the graph with this `ID`, now or earlier; may be repeated")
	fs.StringVar(&f.after, "after", "", "only events after the one with this `CURSOR`")
	fs.StringVar(&f.since, "since", "", "session directory: only events at or after `TIME`, such as 2026-05-01T12:00:00Z, 2026-05-01, or 90m for 90 minutes ago")
	fs.StringVar(&f.until, "until", "", "session directory: only events at or before `TIME`")
	fs.IntVar(&f.limit, "limit", 0, "stop after `N` events")
	fs.BoolVar(&f.newest, "newest", false, "session directory: with --limit, show the last events rather than the first")
	fs.BoolVar(&f.follow, "follow", false, "session directory: continue with new events until interrupted")
	formatFlag(cmd, &f.format)
}

// checkFlags rejects flags that exclude each other, and returns the requested kinds.
func (f *watchFlags) checkFlags(op string) ([]journal.EventKind, error) {
	if err := checkFormat(f.format); err != nil {
		return nil, err
	}
	switch {
	case f.limit < 0:
		return nil, usage("--limit %d: use a number of events, or 0 for all", f.limit)
	case f.newest && (f.follow || f.after != ""):
		return nil, usage("--newest cannot be combined with --follow or --after")
	case f.since != "" && f.after != "":
		return nil, usage("--since and --after both say where to begin: use one of them")
	}
	kinds, err := operations.ParseKinds(op, f.kinds)
	return kinds, failWith(exitUsage, err)
}

func (f *watchFlags) showEvents(cmd *cobra.Command, s streams, args []string) error {
	kinds, err := f.checkFlags("events")
	if err != nil {
		return err
	}
	v, err := savedAt(cmd.Context(), args[0])
	switch {
	case err != nil:
		return err
	case v != nil:
		err := f.saved(cmd, s, v, optional(args, 1), kinds)
		return errors.Join(err, failWith(exitSession, v.Close()))
	case len(args) > 1:
		return usage("%s is not a session directory, so it has no session %s", args[0], args[1])
	}
	for _, name := range []string{"follow", "newest", "since", "until"} {
		if cmd.Flags().Changed(name) {
			return usage("--%s is only for a session directory; the events of a recipe are shown as they happen", name)
		}
	}
	return f.live(cmd, s, args[0], kinds)
}

// savedAt opens a session directory for reading. It returns nil for any other path,
// which must be a recipe.
func savedAt(ctx context.Context, path string) (*sqlitestore.View, error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return nil, nil
	}
	v, err := sqlitestore.OpenReadOnly(ctx, path)
	if abi.CodeOf(err) == abi.NotFound {
		return nil, nil
	}
	return v, failWith(exitSession, err)
}

// eventWriter writes the requested events.
type eventWriter struct {
	f     *watchFlags
	kinds []journal.EventKind
	names *names
	out   *bufio.Writer
	// Events outside these times are left out; 0 means no bound.
	since, until int64
	colour       bool
	left         int // how many more to write; -1 means no limit
	written      bool
}

func (f *watchFlags) writer(s streams, kinds []journal.EventKind, n *names) *eventWriter {
	_, colour := terminal(s.out)
	w := &eventWriter{f: f, kinds: kinds, names: n, out: bufio.NewWriter(s.out), colour: colour, left: -1}
	w.left = cmp.Or(f.limit, -1)
	return w
}

// wants reports whether an event is requested. Of a removed creature or channel, only
// the id is certain.
func (w *eventWriter) wants(ev *journal.Event) bool {
	return ev.Time >= w.since && (w.until == 0 || ev.Time <= w.until) &&
		(len(w.kinds) == 0 || slices.Contains(w.kinds, ev.Kind)) &&
		among(w.f.creatures, string(ev.Creature), w.names.ofCreature(ev.Creature)) &&
		among(w.f.channels, string(ev.Channel), w.names.ofChannel(ev.Channel))
}

// among reports whether an id or its name is in a list, or there is no list.
func among(list []string, id, name string) bool {
	return len(list) == 0 || slices.Contains(list, id) || slices.Contains(list, name)
}

// write writes an event. It reports whether more are requested.
func (w *eventWriter) write(ev *journal.Event, cursor journal.EventCursor) (more bool, err error) {
	return w.writeObserved(&engine.Observed{Event: *ev}, cursor)
}

// writeObserved is write for an event of a subscription, which says how long a turn took.
func (w *eventWriter) writeObserved(ob *engine.Observed, cursor journal.EventCursor) (more bool, err error) {
	ev := &ob.Event
	w.left--
	w.written = true
	if w.f.format == "json" {
		r := operations.NewEventRecord(ev)
		r.Cursor, r.TookNS, r.WaitedNS = cursor, int64(ob.Took), int64(ob.Waited)
		enc := json.NewEncoder(w.out)
		enc.SetEscapeHTML(false)
		err = enc.Encode(r)
	} else {
		var line string
		if line, err = eventText(ev, w.names, w.colour); err == nil {
			_, err = io.WriteString(w.out, line)
		}
	}
	return w.left != 0, failWith(exitFailed, err)
}

func (w *eventWriter) flush() error { return failWith(exitFailed, w.out.Flush()) }

// pollEvery is the interval at which a followed directory is read.
const pollEvery = 200 * time.Millisecond
