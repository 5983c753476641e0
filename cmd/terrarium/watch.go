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

	"github.com/spf13/cobra"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// watchFlags are the flags of events.
type watchFlags struct {
	run       runFlags
	kinds     []string
	creatures []string
	channels  []string
	graphs    []string
	after     string
	limit     int
	follow    bool
	format    string
}

func eventsCommand(s streams) *cobra.Command {
	f := &watchFlags{}
	cmd := &cobra.Command{
		Use:   "events RECIPE | DIR [SESSION]",
		Short: "Show what happens in a run, or has happened in a session directory",
		Long: `events shows events, one a line. Of a recipe it runs it, as run does, and shows
what happens. Of a session directory it shows what has been logged, also while
another process uses it: everything, each event once, or with SESSION what that
session, those that it came from and those that came out of it have logged; and
with --follow what is logged from then on.

As JSON, every event has a cursor, which --after takes: it goes on behind the
event, also after merges, splits and restarts.`,
		Example: `  terrarium events examples/quickstart --input lines=examples/quickstart/lines.txt --exit-when-idle
  terrarium events S --kind dead_letter --follow`,
		Args: arguments(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return f.show(cmd, s, args) },
	}
	f.run.add(cmd)
	fs := cmd.Flags()
	fs.StringSliceVar(&f.kinds, "kind", nil, "only events of `KIND`; may be repeated")
	fs.StringArrayVar(&f.creatures, "creature", nil, "only events about a creature, by `NAME` or id; may be repeated")
	fs.StringArrayVar(&f.channels, "channel", nil, "only events of a channel, by `NAME` or id; may be repeated")
	fs.StringArrayVar(&f.graphs, "graph", nil, "only events of a graph, by any `ID` it has had; may be repeated")
	fs.StringVar(&f.after, "after", "", "only what comes after the event with this `CURSOR`")
	fs.IntVar(&f.limit, "limit", 0, "end after `N` events")
	fs.BoolVar(&f.follow, "follow", false, "of a session directory, go on with what is logged, until interrupted")
	formatFlag(cmd, &f.format)
	return cmd
}

func (f *watchFlags) show(cmd *cobra.Command, s streams, args []string) error {
	if err := checkFormat(f.format); err != nil {
		return err
	}
	if f.limit < 0 {
		return usage("--limit %d: use a number of events, or 0 for all", f.limit)
	}
	kinds, err := terrarium.ParseKinds("events", f.kinds)
	if err != nil {
		return failWith(exitUsage, err)
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
	case f.follow:
		return usage("--follow is for a session directory; the run of a recipe is followed as it is")
	}
	return f.live(cmd, s, args[0], kinds)
}

// savedAt opens a session directory for reading. It returns nil for anything
// else, which is a recipe then.
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

// widestKind is how long the longest name of a kind is.
const widestKind = len("creature_session_attached")

// eventWriter writes the events that are wanted.
type eventWriter struct {
	f     *watchFlags
	kinds []engine.EventKind
	names *names
	out   *bufio.Writer
	style textStyle
	left  int // how many may still be written; -1: any number
}

func (f *watchFlags) writer(s streams, kinds []engine.EventKind, n *names) *eventWriter {
	_, colour := terminal(s.out)
	w := &eventWriter{f: f, kinds: kinds, names: n, out: bufio.NewWriter(s.out), style: textStyle{widestKind, colour}, left: -1}
	w.left = cmp.Or(f.limit, -1)
	return w
}

// wants reports whether the event is one of those that were asked for. Of a
// creature or channel that is gone, only the id is known for sure.
func (w *eventWriter) wants(ev *engine.Event) bool {
	return (len(w.kinds) == 0 || slices.Contains(w.kinds, ev.Kind)) &&
		among(w.f.creatures, string(ev.Creature), w.names.ofCreature(ev.Creature)) &&
		among(w.f.channels, string(ev.Channel), w.names.ofChannel(ev.Channel))
}

// among reports whether an id or its name is in a list, or there is no list.
func among(list []string, id, name string) bool {
	return len(list) == 0 || slices.Contains(list, id) || slices.Contains(list, name)
}

// write writes one event. It reports whether there may be more.
func (w *eventWriter) write(ev *engine.Event, cursor engine.EventCursor) (more bool, err error) {
	w.left--
	if w.f.format == "json" {
		r := terrarium.NewEventRecord(ev)
		r.Cursor = cursor
		enc := json.NewEncoder(w.out)
		enc.SetEscapeHTML(false)
		err = enc.Encode(r)
	} else {
		var line string
		if line, err = eventText(ev, w.names, w.style); err == nil {
			_, err = io.WriteString(w.out, line)
		}
	}
	return w.left != 0, failWith(exitFailed, err)
}

func (w *eventWriter) flush() error { return failWith(exitFailed, w.out.Flush()) }

// pollEvery is the pause between two looks at a directory that is followed.
const pollEvery = 200 * time.Millisecond
