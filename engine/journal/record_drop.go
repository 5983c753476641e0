package journal

import "slices"

// A record's drops are applied before its rows are written. If one change first adds
// something and then drops it, its rows must therefore be removed from the record too.
// The methods do nothing if the record is nil.

// DropCreature drops a creature, with its edges, cursors and wires.
func (r *Record) DropCreature(id CreatureID) {
	if r == nil {
		return
	}
	r.Creatures = slices.DeleteFunc(r.Creatures, func(c CreatureRow) bool { return c.ID == id })
	r.Edges = slices.DeleteFunc(r.Edges, func(e EdgeRow) bool { return e.Creature == id })
	r.Cursors = slices.DeleteFunc(r.Cursors, func(c CursorRow) bool { return c.Reader == ReaderID(id) })
	r.Wires = slices.DeleteFunc(r.Wires, func(w OutputWire) bool { return w.From == id })
	r.Drop.Creatures = append(r.Drop.Creatures, id)
}

// DropChannel drops a channel, with its head, edges and cursors.
func (r *Record) DropChannel(id ChannelID) {
	if r == nil {
		return
	}
	r.Channels = slices.DeleteFunc(r.Channels, func(c ChannelRow) bool { return c.ID == id })
	r.Heads = slices.DeleteFunc(r.Heads, func(h HeadRow) bool { return h.Channel == id })
	r.Edges = slices.DeleteFunc(r.Edges, func(e EdgeRow) bool { return e.Channel == id })
	r.Cursors = slices.DeleteFunc(r.Cursors, func(c CursorRow) bool { return c.Channel == id && c.Until == 0 })
	r.Drop.Channels = append(r.Drop.Channels, id)
}

// DropEdge drops one edge.
func (r *Record) DropEdge(edge EdgeRow) {
	if r == nil {
		return
	}
	r.Edges = slices.DeleteFunc(r.Edges, func(e EdgeRow) bool {
		return e.Creature == edge.Creature && e.Channel == edge.Channel && e.Direction == edge.Direction
	})
	r.Drop.Edges = append(r.Drop.Edges, edge)
}

// DropCursor drops one cursor.
func (r *Record) DropCursor(row CursorRow) {
	if r == nil {
		return
	}
	r.Cursors = slices.DeleteFunc(r.Cursors, func(c CursorRow) bool {
		return c.Reader == row.Reader && c.Channel == row.Channel && c.Until == row.Until
	})
	r.Drop.Cursors = append(r.Drop.Cursors, row)
}

// PutMeta sets a value of the store's metadata. An empty value deletes the key.
func (r *Record) PutMeta(key, value string) {
	if r == nil {
		return
	}
	if r.Meta == nil {
		r.Meta = map[string]string{}
	}
	r.Meta[key] = value
}
