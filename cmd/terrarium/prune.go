package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore"
	"github.com/spf13/cobra"
)

// pruneFlags holds the flags of session prune.
type pruneFlags struct {
	age    time.Duration
	events int64
	bytes  string
	plan   bool
	format string
}

func sessionPruneCommand(s streams) *cobra.Command {
	f := &pruneFlags{}
	cmd := &cobra.Command{
		Use:   "prune DIR [SESSION]",
		Short: "Prune old history",
		Long: `prune deletes the oldest history of one live session, or of every live session in
the directory, until the rest is within the given bounds. It never deletes
messages that a creature or reader still has to handle, events after the oldest of
them, or anything that is not history: state, timers and dead letters.

With --plan it shows what would be pruned and changes nothing. Without --plan, no
other process may be using the directory.`,
		Example: `  terrarium session prune S --events 100000 --plan
  terrarium session prune S --age 720h`,
		Args: arguments(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.prune(cmd.Context(), s, args[0], optional(args, 1))
		},
	}
	fs := cmd.Flags()
	fs.DurationVar(&f.age, "age", 0, "prune events this much older than the session's newest event, such as 720h")
	fs.Int64Var(&f.events, "events", 0, "keep this many of the newest events of each session")
	fs.StringVar(&f.bytes, "bytes", "", "shrink each session's file to about `SIZE`, such as 500MB")
	fs.BoolVar(&f.plan, "plan", false, "show what would be pruned, and change nothing")
	formatFlag(cmd, &f.format)
	return cmd
}

func (f *pruneFlags) bound() (bound sqlitestore.Retention, err error) {
	if err := checkFormat(f.format); err != nil {
		return bound, err
	}
	if f.age < 0 || f.events < 0 {
		return bound, usage("--age and --events must not be negative")
	}
	if bound.Bytes, err = parseSize("--bytes", f.bytes); err != nil {
		return bound, err
	}
	bound.Age, bound.Events = f.age, f.events
	if bound == (sqlitestore.Retention{}) {
		return bound, usage("say how much to keep, with --age, --events or --bytes")
	}
	return bound, nil
}

func (f *pruneFlags) prune(ctx context.Context, s streams, dir, session string) error {
	bound, err := f.bound()
	if err != nil {
		return err
	}
	if err := mustExist(dir); err != nil {
		return err
	}
	if !f.plan {
		if err := upToDate(ctx, dir); err != nil {
			return err
		}
	}
	var chosen []journal.SessionID
	var reports []sqlitestore.PruneReport
	err = withView(ctx, dir, func(v *sqlitestore.View) error {
		if chosen, err = pruned(ctx, v, session); err != nil || !f.plan {
			return err
		}
		reports, err = pruneAll(chosen, func(of journal.SessionID) (sqlitestore.PruneReport, error) { return v.PlanPrune(ctx, of, bound) })
		return err
	})
	if err == nil && !f.plan {
		reports, err = f.carryOut(ctx, dir, chosen, bound)
	}
	if err != nil {
		return err
	}
	if f.format == "json" {
		return printJSON(s, newPruneResult(reports, !f.plan))
	}
	return failWith(exitFailed, f.print(s.text(), reports))
}

// pruned returns the sessions to prune.
func pruned(ctx context.Context, v *sqlitestore.View, name string) (out []journal.SessionID, err error) {
	list, err := v.Catalogue(ctx)
	if err != nil {
		return nil, failWith(exitSession, err)
	}
	if name != "" {
		info, err := namedSession(list, name)
		return []journal.SessionID{info.Session}, err
	}
	for _, i := range liveSessions(list) {
		out = append(out, i.Session)
	}
	return out, nil
}

func pruneAll(sessions []journal.SessionID, one func(journal.SessionID) (sqlitestore.PruneReport, error)) (out []sqlitestore.PruneReport, err error) {
	for _, session := range sessions {
		r, err := one(session)
		if err != nil {
			return out, failWith(exitSession, err)
		}
		out = append(out, r)
	}
	return out, nil
}

// carryOut prunes. It opens the directory for writing, so no other process may use it.
func (f *pruneFlags) carryOut(ctx context.Context, dir string, sessions []journal.SessionID, bound sqlitestore.Retention) (reports []sqlitestore.PruneReport, err error) {
	d, err := sqlitestore.Open(ctx, dir, sqlitestore.Options{})
	if err != nil {
		return nil, failWith(exitSession, err)
	}
	defer func() { err = errors.Join(err, failWith(exitSession, d.Close())) }()
	return pruneAll(sessions, func(of journal.SessionID) (sqlitestore.PruneReport, error) { return d.Prune(ctx, of, bound) })
}

// pruneResult is the JSON form of what was, or would be, pruned.
type pruneResult struct {
	Done     bool            `json:"done"` // false for a plan
	Sessions []prunedSession `json:"sessions"`
}

type prunedSession struct {
	Session terrarium.SessionID `json:"session"`
	Events  int64               `json:"events"`          // before
	Given   int64               `json:"given_up"`        // how many of them are pruned; programs read the member by this name
	Since   string              `json:"since,omitempty"` // time of the oldest event that is kept
	Held    bool                `json:"held"`            // more is kept than requested, because a reader has yet to read it
	Bytes   int64               `json:"bytes"`           // size of its file before
	Left    int64               `json:"bytes_left,omitempty"`
}

func newPruneResult(reports []sqlitestore.PruneReport, done bool) pruneResult {
	out := pruneResult{Done: done, Sessions: []prunedSession{}}
	for _, r := range reports {
		p := prunedSession{Session: r.Session, Events: r.Events, Given: r.Given, Held: r.Held, Bytes: r.Bytes, Left: r.Left}
		if r.Since != 0 {
			p.Since = time.Unix(0, r.Since).UTC().Format(time.RFC3339Nano)
		}
		out.Sessions = append(out.Sessions, p)
	}
	return out
}

func (f *pruneFlags) print(w io.Writer, reports []sqlitestore.PruneReport) error {
	for _, r := range reports {
		line := fmt.Sprintf("Session %s: nothing to prune of %s", r.Session, count(r.Events, "event"))
		if r.Given > 0 {
			verb := "pruned"
			if f.plan {
				verb = "would prune"
			}
			line = fmt.Sprintf("Session %s: %s %s of %s, all before %s", r.Session, verb, count(r.Given, "event"),
				humanize.Comma(r.Events), time.Unix(0, r.Since).UTC().Format(eventTime))
			if !f.plan {
				line += "; " + pruneSize(r.Bytes, r.Left)
			}
		}
		if r.Held {
			line += "; more is kept, because a reader has not read it yet"
		}
		if _, err := fmt.Fprintln(w, line+"."); err != nil {
			return err
		}
	}
	return nil
}

// pruneSize describes the size of a file before and after. Deleting a few events may
// free no whole page, so the file does not always get smaller.
func pruneSize(before, after int64) string {
	was, is := humanize.IBytes(uint64(before)), humanize.IBytes(uint64(after))
	if after >= before || is == was {
		return fmt.Sprintf("its file still takes %s", is)
	}
	return fmt.Sprintf("its file takes %s, before %s", is, was)
}
