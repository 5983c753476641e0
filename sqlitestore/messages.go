package sqlitestore

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/seed47132306/terrarium/engine/journal"
)

const (
	isMessage = "kind IN (1, 23, 24, 25, 26, 28)" // those for which [journal.EventKind.IsMessage] is true

	// indexBatch is how many messages may wait to be indexed. A larger batch makes indexing
	// cheaper per message, because the messages of a channel are next to each other in the
	// index; a smaller one shortens the pause for each batch, and the scan by readers at the
	// end of a channel. So fewer messages wait if they are of few channels: indexRun for
	// each channel, and at least indexLeast.
	indexBatch = 4096
	indexRun   = 32
	indexLeast = 256

	// indexSpan is how many events may follow the indexed ones, messages or not. Where a
	// message has a hundred listeners, two hundred events follow each; opening a store
	// and reading the end of a channel scan all of them.
	indexSpan = 32768
)

// messages reads messages of a channel. A limit of zero or less is no limit, and likewise
// for bytes.
func (f *family) messages(ctx context.Context, channel journal.ChannelID, after, until uint64, limit int, bytes int64) (events []journal.Event, err error) {
	v, err := f.look(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, v.end()) }()
	if until == 0 {
		until = 1<<63 - 1
	}
	if limit <= 0 {
		limit = -1
	}
	if bytes <= 0 {
		bytes = math.MaxInt64
	}
	var found []journal.Event
	for _, s := range v.files {
		part, err := s.messages(ctx, channel, after, until, limit, bytes)
		if err != nil {
			return nil, err
		}
		found = append(found, part...)
	}
	if len(v.files) == 1 {
		return found, nil
	}
	return first(found, limit, bytes), nil
}

// first merges the messages of a channel from several files in order, each message once,
// up to the limits.
func first(found []journal.Event, limit int, bytes int64) (out []journal.Event) {
	slices.SortStableFunc(found, func(a, b journal.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, ev := range found {
		if n := len(out); n > 0 && out[n-1].Seq == ev.Seq && out[n-1].ID == ev.ID {
			continue
		}
		out = append(out, ev)
		bytes -= int64(len(ev.Payload) + len(ev.Headers))
		if len(out) == limit || bytes <= 0 {
			break
		}
	}
	return out
}

// messages reads the index, and then the messages that are too new to be in it. Numbers
// of a channel rise with its log, so the latter come after the former.
func (s *snapshot) messages(ctx context.Context, channel journal.ChannelID, after, until uint64, limit int, bytes int64) ([]journal.Event, error) {
	packed, err := scanEvents(ctx, s.tx, &bytes, "SELECT "+eventFields+" FROM event WHERE id IN "+
		"(SELECT event FROM message WHERE channel = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?) ORDER BY seq",
		string(channel), int64(after), int64(until), limit)
	if err != nil {
		return nil, err
	}
	if n := len(packed); n > 0 {
		after = packed[n-1].Seq
	}
	if len(packed) != limit && after < until && bytes >= 0 {
		newest, err := scanEvents(ctx, s.tx, &bytes, "SELECT "+eventFields+" FROM event WHERE id > (SELECT through FROM indexed) AND "+
			isMessage+" AND channel = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?",
			string(channel), int64(after), int64(until), max(limit-len(packed), -1))
		if err != nil {
			return nil, err
		}
		packed = append(packed, newest...)
	}
	return s.unpackAll(ctx, packed)
}

// loadIndex finds out how far the index is behind.
func (w *writer) loadIndex() error {
	n, _, err := w.c.Integer("SELECT count(*) FROM event WHERE id > (SELECT through FROM indexed) AND " + isMessage)
	if err != nil {
		return err
	}
	w.unindexed, w.unindexedOf = int(n), map[journal.ChannelID]struct{}{}
	n, _, err = w.c.Integer("SELECT count(*) FROM event WHERE id > (SELECT through FROM indexed)")
	w.unspanned = int(n)
	return err
}

// index brings the index up to date once enough messages or events wait for it, within
// the transaction that appends the last of them. Every event that is appended
// has a higher packed id than all before, because an origin that starts to
// write gets the next number.
func (w *writer) index(group []*journal.Record) error {
	for _, r := range group {
		w.unspanned += len(r.Events)
		for i := range r.Events {
			if r.Events[i].Kind.IsMessage() {
				w.unindexed++
				w.unindexedOf[r.Events[i].Channel] = struct{}{}
			}
		}
	}
	if w.unindexed < min(max(indexRun*len(w.unindexedOf), indexLeast), indexBatch) && w.unspanned < indexSpan {
		return nil
	}
	if err := w.indexFrom("(SELECT through FROM indexed)", "0x7fffffffffffffff"); err != nil {
		return err
	}
	return w.indexedAll()
}

// indexFrom indexes the events between two packed ids, both excluded.
func (w *writer) indexFrom(low, high string) error {
	return w.c.Exec("INSERT OR IGNORE INTO main.message (channel, seq, event) SELECT channel, seq, id FROM main.event WHERE id > " + low +
		" AND id < " + high + " AND " + isMessage + " AND channel IS NOT NULL AND seq IS NOT NULL ORDER BY channel, seq")
}

// indexedAll records that every event is in the index.
func (w *writer) indexedAll() error {
	w.unindexed, w.unspanned = 0, 0
	clear(w.unindexedOf)
	return w.c.Exec("UPDATE main.indexed SET through = coalesce((SELECT max(id) FROM main.event), 0)")
}
