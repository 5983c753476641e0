package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/seed47132306/terrarium/abi"
	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

// ForkAt is Fork of a session as it was at a mark in what it wrote: with its history up to
// the mark, and its live rows as they were then. It also returns the last event of the
// fork. A record that the mark divides is left out. Only the cursors of outside readers
// stay as they are now or, where the fork ends earlier, are at its end. Unlike Fork it
// needs only the history, so it can also fork an ended session whose file has been
// removed.
//
// ForkAt returns invalid_argument for a mark before the session's first event. It returns
// unsupported for a mark at which the rows cannot be determined: an older program wrote the
// session, or history has been pruned since, even if only up to the mark.
func (a *archive) ForkAt(ctx context.Context, session journal.SessionID, at journal.Mark, dir string) (fork journal.SessionID, last journal.EventID, err error) {
	if err := a.flush(ctx, session); err != nil {
		return "", journal.EventID{}, err
	}
	fork, err = a.catalog.fork(ctx, session, dir, func(e catalog.Entry, path string) (err error) {
		last, err = a.catalog.materialiseAt(ctx, e.Session, at, path)
		return err
	})
	return fork, last, err
}

// materialiseAt writes a session as it was at a mark to a durable file that needs no
// other, and returns its last event.
func (k *sessions) materialiseAt(ctx context.Context, session journal.SessionID, at journal.Mark, path string) (last journal.EventID, err error) {
	err = k.withFamily(ctx, "fork", session, func(e catalog.Entry, f *family) error {
		if len(f.missing) > 0 {
			return lostAncestor(e, f.missing[0])
		}
		own, err := k.authored(ctx, e, f)
		if err != nil {
			return err
		}
		var upTo map[journal.Origin]uint64
		if upTo, last, err = f.bounds(ctx, own, at); err != nil {
			return err
		}
		if last.IsZero() {
			return f.nothingUpTo(ctx, e, at)
		}
		b, err := newWhole(path, k.hooks)
		if err != nil {
			return err
		}
		b.only, b.upTo = f.only, upTo
		if err := errors.Join(b.collectAt(ctx, e, f, own), b.close()); err != nil {
			return err
		}
		return k.hooks.SyncFile(path)
	})
	return last, err
}

// newWhole begins a file that will hold a whole session.
func newWhole(path string, h failpoint.Hooks) (*builder, error) {
	content, err := storefile.Schema.Template()
	if err != nil {
		return nil, err
	}
	if err := files.WriteFile(path, content); err != nil {
		return nil, err
	}
	return openBuilder(path, h, &crossing{})
}

// bounds returns how far each of a session's own origins reaches up to a mark, in whole
// records, and the last event of these.
func (f *family) bounds(ctx context.Context, own map[journal.Origin]uint64, at journal.Mark) (upTo map[journal.Origin]uint64, last journal.EventID, err error) {
	v, err := f.look(ctx)
	if err != nil {
		return nil, last, err
	}
	defer func() { err = errors.Join(err, v.end()) }()
	spans, err := v.spans(ctx)
	if err != nil {
		return nil, last, err
	}
	upTo = map[journal.Origin]uint64{}
	for origin := range own {
		upTo[origin] = 0
	}
	var latest int64
	for _, s := range spans {
		if _, mine := own[s.origin]; !mine {
			continue
		}
		id, ts, err := s.bound(ctx, at)
		if err != nil {
			return nil, last, err
		}
		upTo[s.origin] = uint64(id & storefile.SeqMask)
		if id&storefile.SeqMask > 0 && ts >= latest {
			latest, last = ts, journal.EventID{Origin: s.origin, Seq: uint64(id & storefile.SeqMask)}
		}
	}
	return upTo, last, nil
}

// bound returns the packed id and the time of the last event of a span that is not after a
// mark and ends a record.
func (s span) bound(ctx context.Context, at journal.Mark) (id, ts int64, err error) {
	id = s.low>>storefile.SeqBits<<storefile.SeqBits | int64(min(at.Event.Seq, uint64(s.high&storefile.SeqMask)))
	if s.origin != at.Event.Origin {
		id = s.low>>storefile.SeqBits<<storefile.SeqBits - 1
		err = s.value(ctx, &id, "SELECT id FROM event WHERE id BETWEEN ? AND ? AND ts <= ? ORDER BY id DESC LIMIT 1", s.low, s.high, at.Since)
	}
	if err != nil || id < s.low {
		return s.low >> storefile.SeqBits << storefile.SeqBits, 0, err
	}
	if id, err = s.wholeRecords(ctx, id); err != nil {
		return id, 0, err
	}
	return id, ts, s.value(ctx, &ts, "SELECT ts FROM event WHERE id = ?", id)
}

// wholeRecords returns the last event up to the given one that ends a record.
func (s span) wholeRecords(ctx context.Context, id int64) (int64, error) {
	first, turn := id+1, int64(0)
	err := errors.Join(
		s.value(ctx, &first, `SELECT first FROM change WHERE event = (SELECT min(event) FROM change WHERE event > ?1 AND event <= ?2)
			AND first <= ?1 ORDER BY part LIMIT 1`, id, s.high),
		s.value(ctx, &turn, `SELECT e.turn FROM event e JOIN event n ON n.id = e.id + 1 WHERE e.id = ? AND n.turn = e.turn`, id))
	if turn > 0 && turn <= id && turn>>storefile.SeqBits == id>>storefile.SeqBits {
		first = min(first, turn)
	}
	return first - 1, err
}

// value reads one number, if there is one.
func (s span) value(ctx context.Context, to *int64, query string, args ...any) error {
	return sqlite.Each(ctx, s.in.tx, func(scan func(...any) error) error { return scan(to) }, query, args...)
}

// collectAt merges the history of a family up to the bounds, and restores the live rows as
// they were at its end.
func (b *builder) collectAt(ctx context.Context, e catalog.Entry, f *family, own map[journal.Origin]uint64) error {
	if err := b.strip(); err != nil {
		return err
	}
	for _, r := range f.members() {
		if err := b.unite(ctx, r.vouched, r.mode); err != nil {
			return err
		}
	}
	err := b.c.Transact(func() error {
		e.Complete = true
		for origin := range own {
			if err := b.c.Exec("INSERT OR IGNORE INTO own (uuid) VALUES (?)", origin[:]); err != nil {
				return err
			}
		}
		if err := errors.Join(b.w.loadOrigins(), b.w.identify(e, ""), b.noteKept(), b.c.Exec("DELETE FROM store WHERE key = ?", storefile.Incomplete)); err != nil {
			return err
		}
		return b.w.rewind(e, slices.Collect(maps.Keys(own)))
	})
	if err != nil || f.own == nil {
		return err
	}
	return b.c.Attached(f.own.path, f.own.mode, b.seatReaders)
}

// seatReaders sets the cursors of outside readers to their present positions or, where the
// fork ends earlier, to its end.
func (b *builder) seatReaders() error {
	return b.c.Transact(func() error {
		if err := b.c.Exec("DELETE FROM main.cursor WHERE reader >= 'reader:' AND reader < 'reader;'"); err != nil {
			return err
		}
		return b.c.Exec(`INSERT INTO main.cursor (reader, channel, seq, until, alias)
			SELECT c.reader, c.channel, min(c.seq, coalesce(h.seq, 0)), c.until, c.alias
			FROM parent.cursor c JOIN main.channel n ON n.id = c.channel LEFT JOIN main.head h ON h.channel = c.channel
			WHERE c.reader >= 'reader:' AND c.reader < 'reader;'`)
	})
}

// nothingUpTo is the error for a session that has nothing up to a mark: it did not exist
// yet, or what it wrote until then has been pruned.
func (f *family) nothingUpTo(ctx context.Context, e catalog.Entry, at journal.Mark) error {
	pruned := false
	for _, r := range f.members() {
		err := sqlite.Each(ctx, r.db, func(scan func(...any) error) error { pruned = true; return nil }, "SELECT 1 FROM store WHERE key = '"+storefile.Pruned+"'")
		if err != nil {
			return err
		}
	}
	if begun := !at.Event.IsZero() || at.Since >= e.Created; pruned && begun {
		return tooEarly(e, "the history of session %s up to the cursor has been pruned", abi.Unsupported)
	}
	return tooEarly(e, "session %s had not begun yet at the cursor", abi.InvalidArgument)
}

// tooEarly is the error for a session that cannot be forked at the requested place.
func tooEarly(e catalog.Entry, message string, code abi.Code) *abi.Error {
	return &abi.Error{
		Code: code, Op: "fork", Message: fmt.Sprintf(message, e.Session),
		Remedy: "take a later cursor, or fork the session as it is now", IDs: map[string]string{"session": string(e.Session)},
	}
}
