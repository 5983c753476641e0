package sqlitestore

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/seed47132306/terrarium/engine/journal"
	"github.com/seed47132306/terrarium/sqlitestore/internal/catalog"
	"github.com/seed47132306/terrarium/sqlitestore/internal/failpoint"
	"github.com/seed47132306/terrarium/sqlitestore/internal/files"
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"
	"github.com/seed47132306/terrarium/sqlitestore/internal/storefile"
)

const (
	// copyChunk is how much of a file is copied before it is synced. Larger chunks would
	// delay syncs of other files.
	copyChunk int64 = 4 << 20
	// uniteChunk is how many events are copied in one transaction. It bounds how long a copy
	// that is no longer wanted continues.
	uniteChunk int64 = 10_000
	// buildPages is how many pages the write-ahead log of a file that is being made
	// may have.
	buildPages = 4096
)

func bytesAtOnce(h failpoint.Hooks) int64  { return cmp.Or(h.CopyChunk, copyChunk) }
func eventsAtOnce(h failpoint.Hooks) int64 { return cmp.Or(h.UniteChunk, uniteChunk) }

// copyFile copies a file that is no longer written to, from where an earlier attempt
// stopped. It calls progress after each chunk that is durable.
func copyFile(ctx context.Context, h failpoint.Hooks, from, to string, copied int64, progress func(copied int64) error) (err error) {
	in, err := files.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := files.OpenFile(to, os.O_CREATE|os.O_WRONLY)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := out.Truncate(copied); err != nil {
		return err
	}
	for _, f := range []*os.File{in, out} {
		if _, err := f.Seek(copied, io.SeekStart); err != nil {
			return err
		}
	}
	for ctx.Err() == nil {
		n, err := io.CopyN(out, in, bytesAtOnce(h)) // by the file system, where it can
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if copied += n; n == 0 {
			return nil
		}
		if err := h.Sync(out); err != nil {
			return err
		}
		if err := progress(copied); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// builder merges the history of several files into one that is not in use yet. Every step
// may be repeated: events that are present are not added twice.
type builder struct {
	c    *sqlite.Conn
	w    *writer                   // for the steps that a writer performs as well
	only map[journal.Origin]uint64 // the origins to add; nil: all
	upTo map[journal.Origin]uint64 // how much of an origin is added, if not all of it
	// since is the time from which events are added; 0: all are added. Events before the
	// time pruned may be missing, because they were pruned earlier or are not added now.
	since, pruned int64
	hooks         failpoint.Hooks
	crossing      *crossing
}

// openBuilder opens a file to be built, for work that yields to cuts.
func openBuilder(path string, h failpoint.Hooks, x *crossing) (*builder, error) {
	origin, err := newOrigin() // under which nothing is written
	if err != nil {
		return nil, err
	}
	w, err := openWriter(path, journal.Normal, origin, h)
	if err != nil {
		return nil, err
	}
	b := &builder{c: w.c, w: w, hooks: h, crossing: x}
	for _, query := range []string{
		"CREATE TEMP TABLE renumber (old INTEGER PRIMARY KEY, new INTEGER NOT NULL)",
		fmt.Sprintf("PRAGMA wal_autocheckpoint = %d", buildPages), // no caller waits for a checkpoint, and the log stays small
	} {
		if err := w.c.Exec(query); err != nil {
			return nil, errors.Join(err, b.close())
		}
	}
	return b, nil
}

func (b *builder) close() error { return b.w.close() }

// strip removes the live rows that came with a copied file, and marks it as
// incomplete. It also brings the index of messages up to date.
func (b *builder) strip() error {
	return b.transact(failpoint.Stripping, failpoint.Stripped, func() error {
		for _, table := range []string{
			"store", "meta", "own", "creature", "channel", "head", "edge", "cursor", "state_value", "producer", "timer", "request", "wire", "letter",
		} {
			if err := b.c.Exec("DELETE FROM main." + table); err != nil {
				return err
			}
		}
		if err := b.c.Exec("INSERT INTO main.store (key, value) VALUES ('incomplete', '1')"); err != nil {
			return err
		}
		if err := b.w.indexFrom("(SELECT through FROM indexed)", "0x7fffffffffffffff"); err != nil {
			return err
		}
		return b.w.indexedAll()
	})
}

// trim removes events that the source files do not have. An earlier attempt may have
// copied events of a session before they were durable; if the power then failed, the
// session lost them, and continued without them. Or the sources have been pruned since;
// copies of what was pruned would be followed by a gap.
func (b *builder) trim(sources []catalog.Entry) error {
	wanted := map[journal.Origin]stretch{}
	for _, source := range sources {
		err := b.c.Attached(source.Path, sqlite.ReadOnly, func() error {
			return b.stretches("parent", func(origin journal.Origin, s stretch) {
				if known, ok := wanted[origin]; ok {
					s.first, s.last = min(s.first, known.first), max(s.last, known.last)
				}
				wanted[origin] = s
			})
		})
		if err != nil {
			return err
		}
	}
	var extra [][2]driver.Value // from the first, up to the last
	err := b.stretches("main", func(origin journal.Origin, has stretch) {
		w, known := wanted[origin]
		switch {
		case !known || has.last < w.first || has.first > w.last:
			extra = append(extra, [2]driver.Value{has.no<<storefile.SeqBits | has.first, has.no<<storefile.SeqBits | has.last})
			return
		case has.first < w.first:
			extra = append(extra, [2]driver.Value{has.no<<storefile.SeqBits | has.first, has.no<<storefile.SeqBits | (w.first - 1)})
		}
		if has.last > w.last {
			extra = append(extra, [2]driver.Value{has.no<<storefile.SeqBits | (w.last + 1), has.no<<storefile.SeqBits | has.last})
		}
	})
	if err != nil || len(extra) == 0 {
		return err
	}
	return b.c.Transact(func() error {
		for _, ids := range extra {
			if err := b.c.Exec("DELETE FROM main.event WHERE id BETWEEN ? AND ?", ids[0], ids[1]); err != nil {
				return err
			}
			if err := b.c.Exec("DELETE FROM main.message WHERE event BETWEEN ? AND ?", ids[0], ids[1]); err != nil {
				return err
			}
			if err := b.c.Exec("DELETE FROM main.change WHERE event BETWEEN ? AND ?", ids[0], ids[1]); err != nil {
				return err
			}
		}
		return nil
	})
}

// stretch is the part of an origin that a database has: all events from the first to the
// last.
type stretch struct{ no, first, last int64 }

// stretches lists the origins whose events a database has.
func (b *builder) stretches(database string, each func(origin journal.Origin, s stretch)) error {
	return b.c.Query(`SELECT no, uuid, coalesce((SELECT id & 0xffffffffff FROM `+database+`.event WHERE id > no << 40 AND id < (no + 1) << 40 ORDER BY id LIMIT 1), 0),
		coalesce((SELECT id & 0xffffffffff FROM `+database+`.event WHERE id > no << 40 AND id < (no + 1) << 40 ORDER BY id DESC LIMIT 1), 0)
		FROM `+database+`.origin`, nil, func(v []driver.Value) error {
		var origin journal.Origin
		var s stretch
		if err := sqlite.TakeRow(v, &s.no, (*[16]byte)(&origin), &s.first, &s.last); err != nil {
			return err
		}
		if s.first > 0 {
			each(origin, s)
		}
		return nil
	})
}

// transact changes the file in one transaction, between two failpoints.
func (b *builder) transact(before, after failpoint.Point, change func() error) error {
	b.crossing.giveWay()
	err := b.c.Transact(func() error {
		if err := change(); err != nil {
			return err
		}
		return b.hooks.At(before, b.w.path)
	})
	if err != nil {
		return err
	}
	return b.hooks.At(after, b.w.path)
}

// unite adds the events and the lineage of another file.
func (b *builder) unite(ctx context.Context, source vouched, mode sqlite.Mode) error {
	b.crossing.giveWay()
	return b.c.Attached(source.path, mode, func() error {
		if err := b.inheritPruned(); err != nil {
			return err
		}
		pairs, err := b.meet()
		if err != nil {
			return err
		}
		for _, p := range pairs {
			if err := errors.Join(b.uniteOrigin(ctx, p), b.uniteChanges(p)); err != nil {
				return err
			}
		}
		return nil
	})
}

// inheritPruned records up to when the attached file was pruned: so is the file made of
// it.
func (b *builder) inheritPruned() error {
	pruned, _, err := b.c.Integer("SELECT CAST(value AS INTEGER) FROM parent.store WHERE key = '" + storefile.Pruned + "'")
	b.pruned = max(b.pruned, pruned)
	return err
}

// numbers are the numbers of an origin in the attached file and in this one, and the
// highest number of its events that are added.
type numbers struct{ old, new, upTo int64 }

// meet assigns numbers in this file to the origins of the attached file, and takes over
// its lineage, with what the ancestors wrote.
func (b *builder) meet() (pairs []numbers, err error) {
	err = b.c.Transact(func() error {
		for _, query := range []string{
			"INSERT OR IGNORE INTO main.ancestor SELECT * FROM parent.ancestor",
			"INSERT OR IGNORE INTO main.wrote SELECT * FROM parent.wrote",
			"DELETE FROM renumber",
		} {
			if err := b.c.Exec(query); err != nil {
				return err
			}
		}
		return b.meetOrigins()
	})
	if err != nil {
		return nil, err
	}
	err = b.c.Query("SELECT r.old, r.new, o.uuid FROM renumber r JOIN main.origin o ON o.no = r.new ORDER BY r.new", nil, func(v []driver.Value) error {
		var origin journal.Origin
		p := numbers{upTo: storefile.SeqMask}
		if err := sqlite.TakeRow(v, &p.old, &p.new, (*[16]byte)(&origin)); err != nil {
			return err
		}
		if upTo, bounded := b.upTo[origin]; bounded {
			p.upTo = int64(upTo)
		}
		if _, wanted := b.only[origin]; wanted || b.only == nil {
			pairs = append(pairs, p)
		}
		return nil
	})
	return pairs, err
}

// meetOrigins assigns numbers in this file to the origins of the attached file that have
// none yet.
func (b *builder) meetOrigins() error {
	if err := b.c.Exec("INSERT INTO main.origin (uuid) SELECT uuid FROM parent.origin WHERE uuid NOT IN (SELECT uuid FROM main.origin) ORDER BY no"); err != nil {
		return err
	}
	return b.c.Exec("INSERT INTO renumber (old, new) SELECT p.no, o.no FROM parent.origin p JOIN main.origin o ON o.uuid = p.uuid WHERE p.no NOT IN (SELECT old FROM renumber)")
}

// uniteOrigin adds the events of one origin. Each file has all events from its first to
// its last. The files begin at different events if they were pruned up to different times.
// The common part is skipped unread. Missing events are added outwards at both ends, so
// that the file has no gap wherever the work is interrupted.
func (b *builder) uniteOrigin(ctx context.Context, p numbers) error {
	for _, next := range []func(numbers) (low, high int64, found bool, err error){b.behind, b.before} {
		for {
			if err := ctx.Err(); err != nil {
				return err
			}
			low, high, found, err := next(p)
			if err != nil {
				return err
			}
			if !found {
				break
			}
			if err := b.uniteSome(p, low, high); err != nil {
				return err
			}
		}
	}
	return nil
}

// behind returns the bounds of the next events of the attached file after those in this
// one, as packed ids of the attached file.
func (b *builder) behind(p numbers) (low, high int64, found bool, err error) {
	from, _, err := b.c.Integer("SELECT max(id) & 0xffffffffff FROM main.event WHERE id > ? AND id < ?", p.new<<storefile.SeqBits, (p.new+1)<<storefile.SeqBits)
	if err == nil && from == 0 {
		from, err = b.lowerBound(p)
	}
	if err != nil {
		return 0, 0, false, err
	}
	return b.some("", p.old<<storefile.SeqBits|from, p.old<<storefile.SeqBits|p.upTo)
}

// before returns the bounds of the last events of the attached file that precede those in
// this one and are kept.
func (b *builder) before(p numbers) (low, high int64, found bool, err error) {
	first, any, err := b.c.Integer("SELECT min(id) & 0xffffffffff FROM main.event WHERE id > ? AND id < ?", p.new<<storefile.SeqBits, (p.new+1)<<storefile.SeqBits)
	if err != nil || !any || first <= 1 {
		return 0, 0, false, err
	}
	from, err := b.lowerBound(p)
	if err != nil || from >= first-1 {
		return 0, 0, false, err
	}
	return b.some(" DESC", p.old<<storefile.SeqBits|from, p.old<<storefile.SeqBits|min(p.upTo, first-1))
}

// some returns the bounds of the first or last events after behind, up to upTo, that are
// added at once.
func (b *builder) some(order string, behind, upTo int64) (low, high int64, found bool, err error) {
	err = b.c.Query("SELECT min(id), max(id) FROM (SELECT id FROM parent.event WHERE id > ? AND id <= ? ORDER BY id"+order+" LIMIT ?)",
		[]driver.Value{behind, upTo, eventsAtOnce(b.hooks)}, func(v []driver.Value) error {
			if low, found = v[0].(int64); found {
				high = v[1].(int64)
			}
			return nil
		})
	return low, high, found, err
}

// uniteSome adds the events of an origin between two ids of the attached file.
func (b *builder) uniteSome(p numbers, low, high int64) error {
	shift := (p.new - p.old) << storefile.SeqBits
	return b.transact(failpoint.Uniting, failpoint.United, func() error {
		// A session writes to its file meanwhile, including under origins that this file did
		// not know before.
		if err := b.meetOrigins(); err != nil {
			return err
		}
		if err := b.c.Exec(`INSERT INTO main.event (id, ts, kind, graph, creature, turn, attempt, channel, seq, headers, payload, cause, sum)
			SELECT id + ?1, ts, kind, graph, creature,
				CASE WHEN turn >> 40 = ?2 THEN turn + ?1 ELSE (SELECT new << 40 FROM renumber WHERE old = turn >> 40) | (turn & 0xffffffffff) END,
				attempt, channel, seq, headers, payload,
				CASE WHEN cause >> 40 = ?2 THEN cause + ?1 ELSE (SELECT new << 40 FROM renumber WHERE old = cause >> 40) | (cause & 0xffffffffff) END, sum
			FROM parent.event WHERE id BETWEEN ?3 AND ?4 ORDER BY id`, shift, p.old, low, high); err != nil {
			return err
		}
		if err := b.w.indexFrom(strconv.FormatInt(low+shift-1, 10), strconv.FormatInt(high+shift+1, 10)); err != nil {
			return err
		}
		return b.w.indexedAll()
	})
}

// finish takes over the live rows and the identity of the attached session, and what has
// been written to it since it was united. The file is then complete, and durable.
func (b *builder) finish(ctx context.Context, own vouched, mode sqlite.Mode) error {
	if err := b.c.SetDurable(true); err != nil {
		return err
	}
	if err := b.unite(ctx, own, mode); err != nil {
		return err
	}
	return b.c.Attached(own.path, mode, func() error {
		return b.transact(failpoint.Finishing, failpoint.Finished, func() error {
			if err := takeAllRows(b.c); err != nil {
				return err
			}
			if err := b.noteKept(); err != nil {
				return err
			}
			if err := b.forgetChanges(); err != nil {
				return err
			}
			return b.c.Exec("DELETE FROM main.store WHERE key IN ('incomplete', 'needs', 'unused', 'moved')")
		})
	})
}

// hasAllOf checks that the file has everything that a source has and that is to be kept.
// Only such a file may become the history of a session, whatever an earlier attempt has
// left in it.
func (b *builder) hasAllOf(source vouched, mode sqlite.Mode) error {
	has := map[journal.Origin]stretch{}
	if err := b.stretches("main", func(origin journal.Origin, s stretch) { has[origin] = s }); err != nil {
		return err
	}
	return b.c.Attached(source.path, mode, func() error {
		var lost error
		var all []numbers
		var origins []journal.Origin
		err := b.stretches("parent", func(origin journal.Origin, s stretch) {
			all, origins = append(all, numbers{s.no, s.first, s.last}), append(origins, origin)
		})
		if err != nil {
			return err
		}
		for i, of := range all {
			behind, err := b.lowerBound(of)
			if err != nil {
				return err
			}
			first, last, here := max(of.new, behind+1), of.upTo, has[origins[i]]
			if first <= last && (here.first == 0 || here.first > first || here.last < last) {
				lost = errors.Join(lost, fmt.Errorf("the events %s to %d of %s are not in the file that is made of it",
					journal.EventID{Origin: origins[i], Seq: uint64(first)}, last, source.path))
			}
		}
		return lost
	})
}

// lacks returns an error if an event of an ancestor should be in the file by now and is
// not. It finds nothing in a file that was pruned.
func (b *builder) lacks(inherited map[journal.Origin]uint64) error {
	if b.pruned > 0 {
		return nil
	}
	for origin, highest := range inherited {
		_, found, err := b.c.Integer("SELECT 1 FROM event WHERE id = (SELECT no << 40 FROM origin WHERE uuid = ?) | ?", origin[:], int64(highest))
		if err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("the event %s is in none of the files", journal.EventID{Origin: origin, Seq: highest})
		}
	}
	return nil
}
