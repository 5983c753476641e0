package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/sqlitestore"
)

// saved shows the events of a session directory.
func (f *watchFlags) saved(cmd *cobra.Command, s streams, v *sqlitestore.View, session string, kinds []engine.EventKind) error {
	for _, name := range []string{"session", "input", "exit-when-idle", "var", "var-file", "durability", "seed", "workers", "fresh-instances"} {
		if cmd.Flags().Changed(name) {
			return usage("--%s is for running a recipe; a session directory is only read", name)
		}
	}
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	h := &savedHistory{view: v, names: newNames(engine.SavedGraph{})}
	only, err := h.family(ctx, session)
	if err != nil {
		return err
	}
	after := engine.EventCursor(f.after)
	if after == "" {
		after = engine.FromStart
	}
	if h.replay, err = engine.NewReplay(ctx, v, after, only); err != nil {
		if abi.CodeOf(err) == abi.InvalidArgument || abi.CodeOf(err) == abi.NotFound {
			return failWith(exitUsage, err)
		}
		return failWith(exitSession, err)
	}
	h.w = f.writer(s, kinds, h.names)
	err = errors.Join(h.follow(ctx, f.follow), h.w.flush())
	if err == nil && ctx.Err() != nil {
		return &exit{code: exitInterrupted, shown: true}
	}
	return err
}

// savedHistory is a session directory whose events are shown.
type savedHistory struct {
	view       *sqlitestore.View
	replay     *engine.Replay
	w          *eventWriter
	names      *names
	succession engine.Succession
}

// family chooses the sessions that one is about: itself, those that it came from,
// and those that came out of it, later ones included. Without a session it
// chooses all.
func (h *savedHistory) family(ctx context.Context, session string) (func(*engine.SessionInfo) bool, error) {
	if session == "" {
		return nil, nil
	}
	list, err := h.view.Catalogue(ctx)
	if err != nil {
		return nil, failWith(exitSession, err)
	}
	info, err := namedSession(list, session)
	if err != nil {
		return nil, err
	}
	family := map[engine.SessionID]bool{}
	for _, i := range newFamily(list, []engine.SessionInfo{info}).members {
		family[i.Session] = true
	}
	issue := map[engine.SessionID]bool{info.Session: true}
	return func(i *engine.SessionInfo) bool {
		if slices.ContainsFunc(i.Parents, func(p engine.SessionID) bool { return issue[p] }) {
			issue[i.Session] = true
		}
		return family[i.Session] || issue[i.Session]
	}, nil
}

// follow shows all that there is and, if it goes on, all that comes.
func (h *savedHistory) follow(ctx context.Context, goesOn bool) error {
	for {
		if err := h.look(ctx); err != nil {
			return failWith(exitSession, err)
		}
		more, err := h.pass(ctx)
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

// look reads the names that are in use, and which graphs went into which.
func (h *savedHistory) look(ctx context.Context) error {
	list, err := h.view.Catalogue(ctx)
	if err != nil {
		return err
	}
	h.succession = engine.NewSuccession(list)
	for _, i := range liveSessions(list) {
		saved, err := h.view.Saved(ctx, i.Session)
		if err != nil && abi.CodeOf(err) != abi.NotFound { // it may have been cut meanwhile
			return err
		}
		h.names.add(saved)
	}
	return nil
}

// pass shows what there is by now. It reports whether more is wanted.
func (h *savedHistory) pass(ctx context.Context) (more bool, err error) {
	for {
		ev, _, found, err := h.replay.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return false, nil
		case err != nil:
			return false, failWith(exitSession, err)
		case !found:
			return true, nil
		}
		h.names.learn(&ev)
		if !h.w.wants(&ev) || !h.ofGraph(ev.Graph) {
			continue
		}
		var cursor engine.EventCursor
		if h.w.f.format == "json" {
			cursor = h.replay.Cursor()
		}
		if more, err = h.w.write(&ev, cursor); err != nil || !more {
			return false, err
		}
	}
}

func (h *savedHistory) ofGraph(id engine.GraphID) bool {
	asked := h.w.f.graphs
	return len(asked) == 0 || slices.ContainsFunc(asked, func(g string) bool { return h.succession.Related(engine.GraphID(g), id) })
}
