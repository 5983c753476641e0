package replay

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
)

// walk reads the log and finds the turns in it.
//
// A turn's events are consecutive in the log of a session, so at most one turn of each
// session is being read.
type walk struct {
	o       Options
	log     *pages
	begun   bool                                         // Options.First has been reached
	covered func(journal.SessionID, *journal.Event) bool // the event comes before Options.From
	open    map[journal.SessionID]*recorded
	seen    map[journal.SessionID]bool
	lines   map[journal.CreatureID][]journal.Event // log lines of a failed turn, which come before its end
	spare   []*recorded                            // records of finished turns, whose memory is used again
	mail    *mail
	stage   *stage
}

func newWalk(ctx context.Context, o Options) (*walk, error) {
	o.Source = &shared{Source: o.Source}
	bytes := mailBytes
	if !o.only.IsZero() {
		bytes = oneTurnBytes
	}
	w := &walk{
		o: o, open: map[journal.SessionID]*recorded{}, seen: map[journal.SessionID]bool{}, lines: map[journal.CreatureID][]journal.Event{},
		mail: newMail(o.Source, bytes), stage: newStage(o),
	}
	var err error
	if o.From == "" {
		o.From = journal.FromStart
	}
	if w.covered, err = journal.Covering(ctx, o.Source, o.From); err != nil {
		return nil, err
	}
	w.log, err = startReading(ctx, o)
	return w, err
}

func (w *walk) close(ctx context.Context) {
	w.log.close()
	w.stage.close(ctx)
}

// run reads the whole log, or up to the first turn that differs.
func (w *walk) run(ctx context.Context) error {
	for {
		page, err := w.log.next(ctx)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return w.closeTurns(ctx, nil)
		}
		for i := range page {
			if err := w.followEvent(ctx, &page[i]); err != nil {
				return err
			}
			if w.stage.repeated != nil {
				return nil
			}
			if w.stage.result.Differ > 0 && !w.o.All {
				return w.closeTurns(ctx, w.stage.first())
			}
		}
	}
}

// closeTurns closes the turns that are still being read. If a difference has already been
// found, it only closes turns that ended before it.
func (w *walk) closeTurns(ctx context.Context, found *Difference) error {
	var rest []*recorded
	for _, t := range w.open {
		if found == nil || t.event.Time < found.Ended.UnixNano() {
			rest = append(rest, t)
		}
	}
	slices.SortFunc(rest, func(a, b *recorded) int {
		return cmp.Or(cmp.Compare(a.event.Time, b.event.Time), cmp.Compare(a.session, b.session))
	})
	for _, t := range rest {
		if err := w.shut(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// followEvent processes one event.
func (w *walk) followEvent(ctx context.Context, e *entry) error {
	session, ev := e.session, &e.event
	if !w.seen[session] {
		w.seen[session] = true
		if err := w.shutParents(ctx, session); err != nil {
			return err
		}
	}
	if t := w.open[session]; t != nil {
		if ev.Turn == t.event.ID && !ev.Turn.IsZero() {
			t.effects = append(t.effects, *ev)
			w.mail.remember(ev)
			return nil
		}
		if err := w.shut(ctx, t); err != nil {
			return err
		}
	}
	w.stage.cast.learn(ev)
	w.mail.remember(ev)
	switch {
	case endsTurn(ev):
		return w.openTurn(ctx, e)
	case ev.Kind == journal.EventLog && ev.Turn.IsZero():
		w.lines[ev.Creature] = append(w.lines[ev.Creature], *ev)
	}
	return w.between(ctx, ev)
}

func endsTurn(ev *journal.Event) bool {
	return ev.Kind == journal.EventTurnEnded || ev.Kind == journal.EventTurnFailed
}

// between processes an event that changes a creature's state, timers or requests outside of its turns.
func (w *walk) between(ctx context.Context, ev *journal.Event) error {
	id := holder(ev)
	if id == "" || !w.stage.wants(id) {
		return nil
	}
	if err := w.shutOf(ctx, id); err != nil {
		return err
	}
	w.stage.actor(id).learn(ev)
	return nil
}

// holder returns the creature whose state, timers or requests an event changes.
func holder(ev *journal.Event) journal.CreatureID {
	switch ev.Kind {
	case journal.EventState:
		return ev.Creature
	case journal.EventTimer, journal.EventResult:
		return journal.InboxOwner(ev.Channel)
	}
	return ""
}

// openTurn opens a turn. The event of its end is the first of its events.
func (w *walk) openTurn(ctx context.Context, e *entry) error {
	session, ev := e.session, &e.event
	lines := w.lines[ev.Creature]
	delete(w.lines, ev.Creature)
	if !w.stage.wants(ev.Creature) && !bytes.Contains(ev.Payload, []byte(`"setting"`)) {
		return nil
	}
	if err := w.shutOf(ctx, ev.Creature); err != nil {
		return err
	}
	t := w.blank()
	if err := t.read(session, ev); err != nil {
		return err
	}
	if w.stage.cast.acts(t); !w.stage.wants(t.creature) { // its name is known now
		return nil
	}
	if ev.Kind == journal.EventTurnFailed {
		t.effects = append(t.effects, lines...)
	}
	w.begun = w.begun || w.o.First.IsZero() || ev.ID == w.o.First
	t.judged, t.before = w.begun && !w.covered(session, ev), e.before
	if !w.o.only.IsZero() {
		t.judged = ev.ID == w.o.only
	}
	w.open[session] = t
	return nil
}

// shutOf closes the turn of a creature that is still being read.
func (w *walk) shutOf(ctx context.Context, id journal.CreatureID) error {
	for _, t := range w.open {
		if t.creature == id {
			return w.shut(ctx, t)
		}
	}
	return nil
}

// shutParents closes the last turns of the sessions from which another session came. The
// new session's members come after them.
func (w *walk) shutParents(ctx context.Context, session journal.SessionID) error {
	if len(w.open) == 0 {
		return nil
	}
	list, err := w.o.Source.Catalogue(ctx)
	if err != nil {
		return err
	}
	for _, info := range list {
		if info.Session != session {
			continue
		}
		for _, parent := range info.Parents {
			if t := w.open[parent]; t != nil {
				if err := w.shut(ctx, t); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// shut passes on a turn whose events have all been read.
func (w *walk) shut(ctx context.Context, t *recorded) error {
	delete(w.open, t.session)
	var err error
	if t.judged && !t.cause().IsZero() {
		t.message, err = w.mail.find(ctx, t)
	}
	err = errors.Join(err, w.stage.play(ctx, t))
	w.spare = append(w.spare, t)
	return err
}

// blank returns a turn to be read.
func (w *walk) blank() *recorded {
	n := len(w.spare)
	if n == 0 {
		return &recorded{}
	}
	t := w.spare[n-1]
	w.spare = w.spare[:n-1]
	clear(t.effects)
	*t = recorded{effects: t.effects[:0]}
	return t
}
