package engine

import (
	"cmp"
	"slices"

	"github.com/seed47132306/terrarium/engine/internal/cursors"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/engine/topology"
)

// firstRecord is the first record of a graph's new store: all its live rows as the
// change leaves them, except for state and producers, which the storage copies. It is
// made before the environments follow, so it reads the topology as it is after the
// change and everything else as it was before.
func (x *change) firstRecord(g *storeGroup, info topology.Graph, origin journal.Origin) *journal.Record {
	rec := &journal.Record{}
	snapshot := newSnapshot(x, g, rec, origin)
	for _, b := range g.before {
		if b.store == nil {
			snapshot.add(b, func(id journal.GraphID) bool { return id == info.ID })
		}
	}
	snapshot.write()
	x.inter(rec, g, info.ID, origin)
	x.firstWireNotes(rec, info.ID, origin)
	for _, id := range info.Channels {
		t, _ := x.e.topo.Channel(id)
		row, head := journal.ChannelRow{ID: id}, uint64(0)
		if ch := x.channel(id); ch != nil {
			row, head = ch.row(), ch.head
		}
		row.Name, row.Born, row.Report = t.Name, t.Born, t.Report
		rec.Channels = append(rec.Channels, row)
		rec.Heads = append(rec.Heads, journal.HeadRow{Channel: id, Seq: head})
	}
	for _, id := range info.Creatures {
		x.firstCreature(rec, id)
	}
	for i := range rec.Requests {
		q := &rec.Requests[i]
		q.ID = cmp.Or(x.entry.ids[q.ID], q.ID)
	}
	if x.turn != nil && x.e.topo.GraphOf(x.turn.c.id) == info.ID {
		x.turn.rest.logFirst(x, rec, info.ID, origin)
	}
	return rec
}

func (x *change) channel(id journal.ChannelID) *channel {
	if ch := x.e.channels[id]; ch != nil {
		return ch
	}
	return x.channels[id]
}

// firstCreature adds the rows of one creature.
func (x *change) firstCreature(rec *journal.Record, id journal.CreatureID) {
	cr := x.creature(id)
	t, _ := x.e.topo.Creature(id)
	g := x.home(cr)
	row := cr.rowWith(g, t.Paused, firstApprovals(x, cr))
	row.Name, row.Born = t.Name, t.Born
	if x.losesParent(cr) {
		row.Parent = ""
	}
	row.Privileged, row.Root = t.Privileged, t.Root
	row.Stopped = t.Stopped && (!cr.husk || cr.savedStopped || slices.Contains(x.sealed.Stopped, cr.id))
	rec.Creatures = append(rec.Creatures, row)
	putAsks(g, rec, cr)
	rec.Wires = append(rec.Wires, x.WiresOf(cr.id)...)
	inbox := journal.InboxOf(id)
	inboxRow := journal.ChannelRow{ID: inbox, Name: "inbox", Inbox: id}
	var head uint64
	if ch := x.channel(inbox); ch != nil {
		head = ch.head
	}
	rec.Channels = append(rec.Channels, inboxRow)
	rec.Heads = append(rec.Heads, journal.HeadRow{Channel: inbox, Seq: head})
	x.firstCursors(rec, cr, t)
	for _, e := range t.Edges {
		rec.Edges = append(rec.Edges, journal.EdgeRow{Creature: id, Channel: e.Channel, Direction: e.Direction, Alias: e.Alias, Order: x.e.topo.EdgeOrder(id, e.Channel, e.Direction)})
	}
}

// firstCursors adds the cursors that a creature has after the change: those of its
// present feeds, those of new edges, and backlogs of removed edges.
func (x *change) firstCursors(rec *journal.Record, cr *creature, t topology.Creature) {
	heads := map[journal.ChannelID]uint64{}
	listen := func(id journal.ChannelID) {
		heads[id] = 0
		if ch := x.channel(id); ch != nil {
			heads[id] = ch.head
		}
	}
	listen(journal.InboxOf(cr.id))
	for _, e := range t.Edges {
		if e.Direction == journal.Listen {
			listen(e.Channel)
		}
	}
	feeds := make([]cursors.Feed, len(cr.mb.feeds))
	for i, s := range cr.mb.feeds {
		f := &feeds[i]
		*f = cursors.Feed{
			Channel: s.id, Alias: s.alias, Live: s.ch != nil, Cursor: s.cursor, Dealt: s.dealt(), Until: s.until, Last: s.lastMessage(),
			Dropped: x.dropped[s.id], Again: x.again[cursorKey{cr.reader(), s.id}],
		}
		if f.Runs, f.Divided = x.entry.runs[s]; cr.current.feed == s {
			f.InHand = cr.current.msg.Seq // see bury
		}
	}
	rec.Cursors = append(rec.Cursors, cursors.After(cr.reader(), feeds, heads)...)
}
