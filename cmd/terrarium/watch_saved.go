package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore"
	"github.com/spf13/cobra"
)

// saved shows the events of a session directory.
func (f *watchFlags) saved(cmd *cobra.Command, s streams, v *sqlitestore.View, session string, kinds []journal.EventKind) error {
	for _, name := range []string{"session", "input", "exit-when-idle", "var", "var-file", "durability", "seed", "workers", "fresh-instances", "hibernate-after", "process-memory"} {
		if cmd.Flags().Changed(name) {
			return usage("--%s is only for running a recipe; a session directory is only read", name)
		}
	}
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	h := &savedHistory{view: v, names: newNames(journal.SavedGraph{})}
	if err := h.findStart(ctx, f, s, session, kinds); err != nil {
		return err
	}
	var err error
	if f.newest && f.limit > 0 {
		err = h.last(ctx, f.limit)
	} else {
		err = h.follow(ctx, f.follow)
	}
	err = errors.Join(err, h.w.flush())
	if err == nil && !h.w.written && len(kinds)+len(f.creatures)+len(f.channels) > 0 {
		err = h.names.tellNone(s, "event", f.creatures, f.channels)
	}
	if err == nil && ctx.Err() != nil {
		return interrupted(ctx)
	}
	if err == nil && h.w.left == 0 && !f.newest && f.format == "text" && !f.run.quiet {
		_, err = fmt.Fprintf(s.err, "Stopped after %s; continue with --after %s\n", count(f.limit, "event"), h.replay.Cursor())
	}
	return err
}

// findStart finds the sessions to show and the event to begin with.
func (h *savedHistory) findStart(ctx context.Context, f *watchFlags, s streams, session string, kinds []journal.EventKind) (err error) {
	h.w = f.writer(s, kinds, h.names)
	now := time.Now()
	if h.w.since, err = parseTime("--since", f.since, now); err != nil {
		return err
	}
	if h.w.until, err = parseTime("--until", f.until, now); err != nil {
		return err
	}
	list, err := h.view.Catalogue(ctx)
	if err != nil {
		return failWith(exitSession, err)
	}
	if h.only, err = h.family(ctx, list, session, f.follow); err != nil {
		return err
	}
	after := cmp.Or(journal.EventCursor(f.after), journal.FromStart)
	if f.since != "" {
		after = journal.CursorAt(list, h.w.since-1)
	}
	h.replay, err = journal.NewReplay(ctx, h.view, after, h.only)
	if abi.CodeOf(err) == abi.InvalidArgument || abi.CodeOf(err) == abi.NotFound {
		return failWith(exitUsage, err)
	}
	return failWith(exitSession, err)
}

// parseTime parses a time, a day, or a duration before now. An empty text is 0.
func parseTime(flag, text string, now time.Time) (int64, error) {
	if text == "" {
		return 0, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago).UnixNano(), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", time.DateTime, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UnixNano(), nil
		}
	}
	return 0, usage("%s %s: use a time such as 2026-05-01T12:00:00Z, a day such as 2026-05-01, or a duration before now such as 90m", flag, text)
}

// savedHistory is a session directory whose events are shown.
type savedHistory struct {
	view       *sqlitestore.View
	only       func(*journal.SessionInfo) bool // nil means all
	replay     *journal.Replay
	w          *eventWriter
	names      *names
	succession journal.Succession
}

// family selects the sessions in the history of a session: itself and its ancestors
// and, with follow, its successors. Without a session it selects all.
func (h *savedHistory) family(ctx context.Context, list []journal.SessionInfo, session string, follow bool) (func(*journal.SessionInfo) bool, error) {
	if session == "" {
		return nil, nil
	}
	info, err := namedSession(list, session)
	if err != nil {
		return nil, err
	}
	if err := h.names.read(ctx, h.view, info.Session); err != nil {
		return nil, failWith(exitSession, err)
	}
	family := map[journal.SessionID]bool{}
	for _, i := range newFamily(list, []journal.SessionInfo{info}).members {
		family[i.Session] = true
	}
	if !follow {
		return func(i *journal.SessionInfo) bool { return family[i.Session] }, nil
	}
	issue := map[journal.SessionID]bool{info.Session: true}
	return func(i *journal.SessionInfo) bool {
		if slices.ContainsFunc(i.Parents, func(p journal.SessionID) bool { return issue[p] }) {
			issue[i.Session] = true
		}
		return family[i.Session] || issue[i.Session]
	}, nil
}

// follow shows all events and, if goesOn is set, new events as they are logged.
func (h *savedHistory) follow(ctx context.Context, goesOn bool) error {
	for {
		if err := h.readNames(ctx); err != nil {
			return failWith(exitSession, err)
		}
		more, err := h.pass(ctx, goesOn)
		if err != nil || !more || !goesOn {
			return err
		}
		if err := h.w.flush(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pollEvery):
		}
	}
}

// readNames reads the names in use and the successions of graphs.
func (h *savedHistory) readNames(ctx context.Context) error {
	list, err := h.view.Catalogue(ctx)
	if err != nil {
		return err
	}
	h.succession = journal.NewSuccession(list)
	return h.names.readLive(ctx, h.view, list)
}

// pass shows the events up to now. It reports whether more are requested.
func (h *savedHistory) pass(ctx context.Context, follow bool) (more bool, err error) {
	for {
		ev, _, found, err := h.replay.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return false, nil
		case err != nil:
			return false, failWith(exitSession, err)
		case !found:
			return true, nil
		case h.w.until != 0 && ev.Time > h.w.until && !follow:
			return false, nil // all further events are later
		}
		h.names.learn(&ev)
		if !h.wants(&ev) {
			continue
		}
		var cursor journal.EventCursor
		if h.w.f.format == "json" {
			cursor = h.replay.Cursor()
		}
		if more, err = h.w.write(&ev, cursor); err != nil || !more {
			return false, err
		}
	}
}

func (h *savedHistory) wants(ev *journal.Event) bool { return h.w.wants(ev) && h.ofGraph(ev.Graph) }

func (h *savedHistory) ofGraph(id journal.GraphID) bool {
	asked := h.w.f.graphs
	return len(asked) == 0 || slices.ContainsFunc(asked, func(g string) bool { return h.succession.Related(journal.GraphID(g), id) })
}
