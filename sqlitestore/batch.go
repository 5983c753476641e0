package sqlitestore

import "github.com/seed47132306/terrarium/engine/journal"

// latest collects rows and keeps the last one of every key: only that row is visible
// after the transaction.
type latest[K comparable, V any] struct {
	index map[K]int
	rows  []V
}

func (l *latest[K, V]) put(key K, row V) {
	if i, ok := l.index[key]; ok {
		l.rows[i] = row
		return
	}
	if l.index == nil {
		l.index = make(map[K]int)
	}
	l.index[key] = len(l.rows)
	l.rows = append(l.rows, row)
}

func (l *latest[K, V]) reset() {
	clear(l.index)
	clear(l.rows)
	l.rows = l.rows[:0]
}

type cursorKey struct {
	reader  journal.ReaderID
	channel journal.ChannelID
	until   uint64
}

type stateKey struct {
	creature journal.CreatureID
	key      string
}

type producerKey struct {
	channel  journal.ChannelID
	producer string
}

// batch holds the changes of a group of records to the live rows that change with every
// turn. Other rows are written as they come.
type batch struct {
	cursors   latest[cursorKey, journal.CursorRow]
	state     latest[stateKey, journal.StateRow]
	producers latest[producerKey, journal.ProducerRow]
	heads     latest[journal.ChannelID, journal.HeadRow]
}

func (b *batch) add(r *journal.Record) {
	for _, row := range r.Cursors {
		b.putCursor(row)
	}
	for _, row := range r.State {
		b.putState(row)
	}
	for _, row := range r.Producers {
		b.producers.put(producerKey{row.Channel, row.Producer}, row)
	}
	for _, row := range r.Heads {
		b.heads.put(row.Channel, row)
	}
}

func (b *batch) putCursor(row journal.CursorRow) {
	b.cursors.put(cursorKey{row.Reader, row.Channel, row.Until}, row)
}

func (b *batch) putState(row journal.StateRow) {
	b.state.put(stateKey{row.Creature, row.Key}, row)
}

func (b *batch) reset() {
	b.cursors.reset()
	b.state.reset()
	b.producers.reset()
	b.heads.reset()
}

// recordSize estimates the memory that a record holds while it is queued.
func recordSize(r *journal.Record) int64 { return r.Size() }
