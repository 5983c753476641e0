package sqlitestore

import (
	"database/sql/driver"
	"errors"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// rehearse performs the statements of a cut on a file once, and rolls them back. SQLite
// compiles a statement when it is first used and keeps it, so later cuts need not wait
// for that: neither the cut that the file is made for, nor the one that ends its session.
func (w *writer) rehearse(session journal.SessionID) error {
	err := w.c.Exec("BEGIN IMMEDIATE")
	if err == nil {
		err = w.play(session)
	}
	// What the writer knows about the file is read again, as when it was opened.
	w.pending.reset()
	return errors.Join(err, w.c.Rollback(), w.loadOrigins(), w.loadIndex(), w.loadChain())
}

// play writes to the file what a child gets: its identity, what it inherits and its first
// content.
func (w *writer) play(session journal.SessionID) error {
	const creature, channel = "creature", "channel"
	e := catalog.Entry{SessionInfo: journal.SessionInfo{Session: session, Parents: []journal.SessionID{session}}}
	own := ownRows{creatures: map[string]bool{creature: true}, channels: map[string]bool{channel: true}}
	first := &journal.Record{
		Events:    []journal.Event{{ID: journal.EventID{Origin: w.own, Seq: 1}, Kind: journal.EventTopologyChanged}},
		Creatures: []journal.CreatureRow{{ID: creature}},
		Channels:  []journal.ChannelRow{{ID: channel}},
		Edges:     []journal.EdgeRow{{Creature: creature, Channel: channel, Direction: journal.Listen}},
		Cursors:   []journal.CursorRow{{Reader: creature, Channel: channel}},
		Heads:     []journal.HeadRow{{Channel: channel}},
		Meta:      map[string]string{"key": ""},
	}
	p := &parkedParent{w: w}
	inherited := &smallLog{
		uuids:     map[int64]journal.Origin{0: w.own},
		changes:   [][]driver.Value{{int64(0), int64(0), int64(0), int64(0), "", int64(0)}},
		ancestors: [][]driver.Value{{"", int64(0), nil, "", int64(0), int64(0), int64(0), int64(0), "", "", ""}},
		wrote:     [][]driver.Value{{"", w.own[:], int64(0)}},
	}
	return errors.Join(
		p.readSmall(),
		w.identify(e, ""),
		copyHistories(w, []*smallLog{inherited}),
		own.take(p, &e.SessionInfo, w),
		relations{siblings: []string{string(session)}}.write(w.c),
		storefile.NoteWrote(w.c, session, map[journal.Origin]uint64{w.own: 1}),
		w.apply([]*journal.Record{first}),
		storefile.WriteSeal(w.c, ""),
	)
}
