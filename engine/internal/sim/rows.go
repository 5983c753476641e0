package sim

import (
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
)

// rows holds the live rows of one store, by their keys.
type rows struct {
	creatures map[journal.CreatureID]journal.CreatureRow
	channels  map[journal.ChannelID]journal.ChannelRow
	heads     map[journal.ChannelID]journal.HeadRow
	edges     map[edgeKey]journal.EdgeRow
	cursors   map[cursorKey]journal.CursorRow
	producers map[producerKey]journal.ProducerRow
	state     map[stateKey][]byte
	timers    map[stateKey]journal.TimerRow
	requests  map[journal.EventID]journal.RequestRow
	wires     map[journal.WireID]journal.OutputWire
	letters   map[journal.EventID]journal.DeadLetterRow
	meta      map[string]string
}

type (
	edgeKey struct {
		creature  journal.CreatureID
		channel   journal.ChannelID
		direction journal.Direction
	}
	cursorKey struct {
		reader  journal.ReaderID
		channel journal.ChannelID
		until   uint64
	}
	producerKey struct {
		channel  journal.ChannelID
		producer string
	}
	stateKey struct {
		creature journal.CreatureID
		name     string
	}
)

func newRows(meta map[string]string) *rows {
	r := &rows{
		creatures: map[journal.CreatureID]journal.CreatureRow{}, channels: map[journal.ChannelID]journal.ChannelRow{},
		heads: map[journal.ChannelID]journal.HeadRow{}, edges: map[edgeKey]journal.EdgeRow{},
		cursors: map[cursorKey]journal.CursorRow{}, producers: map[producerKey]journal.ProducerRow{},
		state: map[stateKey][]byte{}, timers: map[stateKey]journal.TimerRow{},
		requests: map[journal.EventID]journal.RequestRow{}, wires: map[journal.WireID]journal.OutputWire{}, letters: map[journal.EventID]journal.DeadLetterRow{},
		meta: map[string]string{},
	}
	maps.Copy(r.meta, meta)
	return r
}

func (r *rows) clone() *rows {
	return &rows{
		maps.Clone(r.creatures), maps.Clone(r.channels), maps.Clone(r.heads), maps.Clone(r.edges), maps.Clone(r.cursors),
		maps.Clone(r.producers), maps.Clone(r.state), maps.Clone(r.timers), maps.Clone(r.requests), maps.Clone(r.wires), maps.Clone(r.letters),
		maps.Clone(r.meta),
	}
}

// apply applies a record: first its drops, then its writes.
func (r *rows) apply(rec *journal.Record) {
	r.drop(&rec.Drop)
	for _, x := range rec.Creatures {
		r.creatures[x.ID] = x
	}
	for _, x := range rec.Channels {
		r.channels[x.ID] = x
	}
	for _, x := range rec.Heads {
		r.heads[x.Channel] = x
	}
	for _, x := range rec.Edges {
		r.edges[edgeKey{x.Creature, x.Channel, x.Direction}] = x
	}
	for _, x := range rec.Cursors {
		r.cursors[cursorKey{x.Reader, x.Channel, x.Until}] = x
	}
	for _, x := range rec.Producers {
		r.producers[producerKey{x.Channel, x.Producer}] = x
	}
	for _, x := range rec.State {
		if k := (stateKey{x.Creature, x.Key}); x.Deleted {
			delete(r.state, k)
		} else {
			r.state[k] = x.Value
		}
	}
	for _, x := range rec.Timers {
		r.timers[stateKey{x.Creature, x.Name}] = x
	}
	for _, x := range rec.Requests {
		r.requests[x.ID] = x
	}
	for _, x := range rec.Wires {
		r.wires[x.ID] = x
	}
	for _, x := range rec.Letters {
		r.letters[x.ID] = x
	}
	maps.Copy(r.meta, rec.Meta)
}

func (r *rows) drop(d *journal.Drop) {
	for _, id := range d.Creatures {
		r.dropCreature(id)
	}
	for _, id := range d.Channels {
		r.dropChannel(id)
	}
	for _, x := range d.Edges {
		delete(r.edges, edgeKey{x.Creature, x.Channel, x.Direction})
	}
	for _, x := range d.Cursors {
		delete(r.cursors, cursorKey{x.Reader, x.Channel, x.Until})
	}
	for _, x := range d.Timers {
		delete(r.timers, stateKey{x.Creature, x.Name})
	}
	for _, id := range d.Requests {
		delete(r.requests, id)
	}
	for _, id := range d.Wires {
		delete(r.wires, id)
	}
	for _, id := range d.Letters {
		delete(r.letters, id)
	}
}

// dropCreature keeps dead letters, which may belong to a removed creature.
func (r *rows) dropCreature(id journal.CreatureID) {
	delete(r.creatures, id)
	maps.DeleteFunc(r.cursors, func(k cursorKey, _ journal.CursorRow) bool { return k.reader == journal.ReaderID(id) })
	maps.DeleteFunc(r.edges, func(k edgeKey, _ journal.EdgeRow) bool { return k.creature == id })
	maps.DeleteFunc(r.state, func(k stateKey, _ []byte) bool { return k.creature == id })
	maps.DeleteFunc(r.timers, func(k stateKey, _ journal.TimerRow) bool { return k.creature == id })
	maps.DeleteFunc(r.requests, func(_ journal.EventID, x journal.RequestRow) bool { return x.Creature == id })
	maps.DeleteFunc(r.wires, func(_ journal.WireID, x journal.OutputWire) bool { return x.From == id })
	r.dropChannel(journal.InboxOf(id))
}

func (r *rows) dropChannel(id journal.ChannelID) {
	delete(r.channels, id)
	delete(r.heads, id)
	maps.DeleteFunc(r.cursors, func(k cursorKey, _ journal.CursorRow) bool { return k.channel == id })
	maps.DeleteFunc(r.edges, func(k edgeKey, _ journal.EdgeRow) bool { return k.channel == id })
	maps.DeleteFunc(r.producers, func(k producerKey, _ journal.ProducerRow) bool { return k.channel == id })
}

// inherit copies the rows that a child of a cut takes over from a parent, and
// the selected dead letters.
func (r *rows) inherit(from *rows, creatures []journal.CreatureID, channels []journal.ChannelID, wanted func(journal.DeadLetterRow) bool) {
	mine, ours := map[journal.CreatureID]bool{}, map[journal.ChannelID]bool{}
	for _, id := range creatures {
		mine[id] = true
	}
	for _, id := range channels {
		ours[id] = true
	}
	for k, v := range from.state {
		if mine[k.creature] {
			r.state[k] = v
		}
	}
	for k, v := range from.letters {
		if wanted(v) {
			r.letters[k] = v
		}
	}
	for k, v := range from.producers {
		if ours[k.channel] {
			r.producers[k] = v
		}
	}
	for k, v := range from.cursors {
		if ours[k.channel] && outside(k.reader) {
			r.cursors[k] = v
		}
	}
}

func outside(r journal.ReaderID) bool { return len(r) > 7 && r[:7] == "reader:" }

// sorted lists the values of a map in the order of less.
func sorted[K comparable, V any](m map[K]V, compare func(a, b V) int) []V {
	return slices.SortedFunc(maps.Values(m), compare)
}
