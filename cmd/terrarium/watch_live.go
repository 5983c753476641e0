package main

import (
	"context"
	"errors"

	"github.com/seed47132306/terrarium"
	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/spf13/cobra"
)

// live runs a recipe and shows its events.
func (f *watchFlags) live(cmd *cobra.Command, s streams, recipe string, kinds []journal.EventKind) error {
	f.run.format = "text"
	f.run.watch = func(ctx context.Context, t *terrarium.Terrarium, done func()) (func() error, error) {
		filter := engine.Filter{Kinds: kinds}
		for _, g := range f.graphs {
			filter.Graphs = append(filter.Graphs, terrarium.GraphID(g))
		}
		known := newNames(journal.SavedGraph{})
		for _, g := range t.Saved() {
			known.add(g)
		}
		w := &liveWatch{t: t, w: f.writer(s, kinds, known), filter: filter}
		if err := w.subscribe(ctx, journal.EventCursor(f.after)); err != nil {
			return nil, failWith(exitUsage, err)
		}
		return w.start(ctx, done), nil
	}
	return f.run.run(cmd, s, recipe)
}

// liveWatch shows the events of an engine.
type liveWatch struct {
	t      *terrarium.Terrarium
	w      *eventWriter
	filter engine.Filter
	sub    *engine.Subscription
	asked  map[string]bool // ids whose names have been requested from the engine
}

func (l *liveWatch) subscribe(ctx context.Context, after journal.EventCursor) (err error) {
	l.asked = map[string]bool{}
	if after == "" {
		l.sub = l.t.Subscribe(l.filter, 0)
		return nil
	}
	l.sub, err = l.t.SubscribeAfter(ctx, l.filter, after, 0)
	return err
}

// start shows events until the returned function is called, which shows the remaining
// ones. start calls done when enough events have been shown.
func (l *liveWatch) start(ctx context.Context, done func()) (end func() error) {
	running, over := context.WithCancel(context.WithoutCancel(ctx))
	result := make(chan error, 1)
	go func() {
		defer done()
		result <- errors.Join(l.showEvents(ctx, running), l.w.flush())
	}()
	return func() error {
		over()
		return <-result
	}
}

// showEvents shows events until the run is over, which is when running ends, and nothing is
// left to show. An interruption, which ends ctx, ends the reading of stores. If the
// subscription falls behind, showEvents continues from the stores.
func (l *liveWatch) showEvents(ctx, running context.Context) error {
	defer func() { l.sub.Close() }()
	for {
		ob, ok, err := l.next(ctx, running)
		switch {
		case err != nil && ctx.Err() == nil && abi.CodeOf(err) != abi.Stopped:
			return failWith(exitSession, err)
		case err != nil || !ok:
			return nil // everything has been shown
		}
		if cursor := l.sub.Cursor(); ob.Missed > 0 && cursor != "" {
			l.sub.Close()
			if err := l.subscribe(context.WithoutCancel(ctx), cursor); err != nil {
				return err
			}
			continue
		}
		if more, err := l.one(&ob); err != nil || !more {
			return err
		}
	}
}

// next returns the next event. It waits for one until the run is over; ok is false if there
// is none after that.
func (l *liveWatch) next(ctx, running context.Context) (ob engine.Observed, ok bool, err error) {
	for {
		over := running.Err() != nil // read first, so that Poll finds all that happened in the run
		if ob, ok, err = l.sub.Poll(ctx); ok || err != nil || over {
			return ob, ok, err
		}
		if l.w.flush() != nil { // nothing is waiting
			return ob, false, nil // the last flush returns the error again
		}
		ob, err = l.sub.Next(running)
		if err == nil || running.Err() == nil {
			return ob, err == nil, err
		}
	}
}

// one shows an event if it is requested.
func (l *liveWatch) one(ob *engine.Observed) (more bool, err error) {
	ev := &ob.Event
	l.w.names.learn(ev)
	l.askFor(string(ev.Creature), l.w.names.creatures[ev.Creature])
	l.askFor(string(ev.Channel), l.w.names.channels[ev.Channel])
	if !l.w.wants(ev) {
		return true, nil
	}
	var cursor journal.EventCursor
	if l.w.f.format == "json" && !ev.ID.IsZero() {
		cursor = l.sub.Cursor()
	}
	return l.w.writeObserved(ob, cursor)
}

// askFor reads all names from the engine at the first event with an unknown id.
func (l *liveWatch) askFor(id, name string) {
	if id == "" || name != "" || l.asked[id] {
		return
	}
	l.asked[id] = true
	graphs, err := l.t.Status("")
	if err != nil {
		return // it is shown by its id
	}
	for i := range graphs {
		for _, c := range graphs[i].Creatures {
			l.w.names.creatures[c.ID] = c.Name
			l.w.names.channels[journal.InboxOf(c.ID)] = "inbox of " + c.Name
		}
		for _, ch := range graphs[i].Channels {
			l.w.names.channels[ch.ID] = ch.Name
		}
	}
}
