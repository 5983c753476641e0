package sqlitestore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/seed47132306/terrarium/engine"
)

const (
	// copyChunk is how much of a file is copied before it is synced. More would
	// make those wait for longer who sync something else meanwhile.
	copyChunk int64 = 4 << 20
	// uniteChunk is how many events are copied in one transaction, and so for how
	// long a copy goes on that is no longer wanted.
	uniteChunk int64 = 10_000
	// buildPages is how many pages the write-ahead log of a file that is being made
	// may have.
	buildPages = 4096
)

// copyFile copies a file that nobody writes to, from where an earlier attempt
// had got to. After each chunk that is durable, progress is told.
func (h hooks) copyFile(ctx context.Context, from, to string, copied int64, progress func(copied int64) error) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o644)
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
		n, err := io.CopyN(out, in, h.bytesAtOnce()) // by the file system, where it can
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if copied += n; n == 0 {
			return nil
		}
		if err := h.sync(out); err != nil {
			return err
		}
		if err := progress(copied); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// atRest makes sure that the file itself has all that was written to it, and not
// its write-ahead log. It answers false while somebody who reads is in the way.
func atRest(path string) (bool, error) {
	c, err := openConn(path, readWrite)
	if err != nil {
		return false, err
	}
	rest := false
	err = c.query("PRAGMA wal_checkpoint(PASSIVE)", nil, func(v []driver.Value) error {
		busy, _ := v[0].(int64)
		frames, _ := v[1].(int64)
		moved, _ := v[2].(int64)
		rest = busy == 0 && frames == moved
		return nil
	})
	return rest, errors.Join(err, c.close())
}

// builder brings the history of several files together in one that nobody uses
// yet. Every step may be done again: what is there is not added twice.
type builder struct {
	c    *conn
	w    *writer                  // for what a writer does as well
	only map[engine.Origin]uint64 // the origins to add; nil: all
	upTo map[engine.Origin]uint64 // how much of an origin is added, where that is not all
	// since is the time from which on events are added; 0: all are. Of those
	// before pruned, some may have been given up, now or in what is added.
	since, pruned int64
	hooks         hooks
	crossing      *crossing
}

// openBuilder opens a file to be built, for work that gives way to cuts.
func openBuilder(path string, h hooks, x *crossing) (*builder, error) {
	origin, err := newOrigin() // under which nothing is written
	if err != nil {
		return nil, err
	}
	w, err := openWriter(path, engine.Normal, origin, h)
	if err != nil {
		return nil, err
	}
	b := &builder{c: w.c, w: w, hooks: h, crossing: x}
	for _, query := range []string{
		"CREATE TEMP TABLE renumber (old INTEGER PRIMARY KEY, new INTEGER NOT NULL)",
		fmt.Sprintf("PRAGMA wal_autocheckpoint = %d", buildPages), // nobody waits for it, and the log stays small
	} {
		if err := w.c.exec(query); err != nil {
			return nil, errors.Join(err, b.close())
		}
	}
	return b, nil
}

func (b *builder) close() error { return b.w.close() }

// strip removes the live rows that came with a copied file, and marks it as
// incomplete. It also brings the index of messages up to date.
func (b *builder) strip() error {
	if err := b.inheritPruned("main"); err != nil {
		return err
	}
	return b.transact(pointStripping, pointStripped, func() error {
		for _, table := range []string{
			"store", "meta", "own", "creature", "channel", "head", "edge", "cursor", "state_value", "producer", "timer", "request", "wire", "letter",
		} {
			if err := b.c.exec("DELETE FROM main." + table); err != nil {
				return err
			}
		}
		if err := b.c.exec("INSERT INTO main.store (key, value) VALUES ('incomplete', '1')"); err != nil {
			return err
		}
		if err := b.noteKept(); err != nil {
			return err
		}
		if err := b.w.indexFrom("(SELECT through FROM indexed)", "0x7fffffffffffffff"); err != nil {
			return err
		}
		return b.w.indexedAll()
	})
}

// trim removes events that the files do not have whose history the file is to be.
// An attempt before may have followed what a session wrote faster than that became
// durable; when the power failed then, the session lost it, and goes on without.
func (b *builder) trim(paths []string) error {
	highest := map[engine.Origin]int64{}
	for _, path := range paths {
		err := b.c.attached(path, readOnly, func() error {
			return b.lasts("parent", func(_ int64, origin engine.Origin, last int64) { highest[origin] = max(highest[origin], last) })
		})
		if err != nil {
			return err
		}
	}
	var extra [][2]driver.Value // from the first, up to the last
	err := b.lasts("main", func(no int64, origin engine.Origin, last int64) {
		if last > highest[origin] {
			extra = append(extra, [2]driver.Value{no<<seqBits | (highest[origin] + 1), no<<seqBits | last})
		}
	})
	if err != nil || len(extra) == 0 {
		return err
	}
	return b.c.transact(func() error {
		for _, ids := range extra {
			if err := b.c.exec("DELETE FROM main.event WHERE id BETWEEN ? AND ?", ids[0], ids[1]); err != nil {
				return err
			}
			if err := b.c.exec("DELETE FROM main.message WHERE event BETWEEN ? AND ?", ids[0], ids[1]); err != nil {
				return err
			}
			if err := b.c.exec("DELETE FROM main.change WHERE event BETWEEN ? AND ?", ids[0], ids[1]); err != nil {
				return err
			}
		}
		return nil
	})
}

// lasts lists the number of the last event of each origin of a database.
func (b *builder) lasts(database string, each func(no int64, origin engine.Origin, last int64)) error {
	return b.c.query(`SELECT no, uuid, coalesce((SELECT id & 0xffffffffff FROM `+database+`.event WHERE id > no << 40 AND id < (no + 1) << 40
		ORDER BY id DESC LIMIT 1), 0) FROM `+database+`.origin`, nil, func(v []driver.Value) error {
		each(v[0].(int64), engine.Origin(v[1].([]byte)), v[2].(int64))
		return nil
	})
}

// transact changes the file in one transaction, between two failpoints.
func (b *builder) transact(before, after failpoint, change func() error) error {
	b.crossing.giveWay()
	err := b.c.transact(func() error {
		if err := change(); err != nil {
			return err
		}
		return b.hooks.at(before, b.w.path)
	})
	if err != nil {
		return err
	}
	return b.hooks.at(after, b.w.path)
}

// unite adds the events and the lineage of another file.
func (b *builder) unite(ctx context.Context, path string, mode fileMode) error {
	b.crossing.giveWay()
	return b.c.attached(path, mode, func() error {
		if err := b.inheritPruned("parent"); err != nil {
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

// inheritPruned notes that a file has given up some of its history, and so does
// then what is made of it.
func (b *builder) inheritPruned(database string) error {
	pruned, _, err := b.c.integer("SELECT CAST(value AS INTEGER) FROM " + database + ".store WHERE key = '" + prunedKey + "'")
	b.pruned = max(b.pruned, pruned)
	return err
}

// numbers are those that an origin has in the attached file and in this one, and
// the highest number of its events that are added.
type numbers struct{ old, new, upTo int64 }

// meet gives the origins of the attached file numbers here, and takes over its
// lineage, with what the ancestors wrote.
func (b *builder) meet() (pairs []numbers, err error) {
	err = b.c.transact(func() error {
		for _, query := range []string{
			"INSERT OR IGNORE INTO main.ancestor SELECT * FROM parent.ancestor",
			"INSERT OR IGNORE INTO main.wrote SELECT * FROM parent.wrote",
			"DELETE FROM renumber",
		} {
			if err := b.c.exec(query); err != nil {
				return err
			}
		}
		return b.meetOrigins()
	})
	if err != nil {
		return nil, err
	}
	err = b.c.query("SELECT r.old, r.new, o.uuid FROM renumber r JOIN main.origin o ON o.no = r.new ORDER BY r.new", nil, func(v []driver.Value) error {
		origin := engine.Origin(v[2].([]byte))
		p := numbers{v[0].(int64), v[1].(int64), seqMask}
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

// meetOrigins gives the origins of the attached file numbers here that have none yet.
func (b *builder) meetOrigins() error {
	if err := b.c.exec("INSERT INTO main.origin (uuid) SELECT uuid FROM parent.origin WHERE uuid NOT IN (SELECT uuid FROM main.origin) ORDER BY no"); err != nil {
		return err
	}
	return b.c.exec("INSERT INTO renumber (old, new) SELECT p.no, o.no FROM parent.origin p JOIN main.origin o ON o.uuid = p.uuid WHERE p.no NOT IN (SELECT old FROM renumber)")
}

// uniteOrigin adds the events of one origin. Where both sides have it, one has
// a beginning of what the other has, so what both have is skipped unread.
func (b *builder) uniteOrigin(ctx context.Context, p numbers) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		more, err := b.uniteSome(p)
		if err != nil || !more {
			return err
		}
	}
}

// uniteSome adds some events of an origin, and answers whether there may be more.
func (b *builder) uniteSome(p numbers) (more bool, err error) {
	low, _, err := b.c.integer("SELECT max(id) & 0xffffffffff FROM main.event WHERE id > ? AND id < ?", p.new<<seqBits, (p.new+1)<<seqBits)
	if err != nil {
		return false, err
	}
	if low == 0 {
		if low, err = b.lowerBound(p); err != nil {
			return false, err
		}
	}
	last, found, err := b.c.integer("SELECT max(id) FROM (SELECT id FROM parent.event WHERE id > ? AND id <= ? ORDER BY id LIMIT ?)",
		p.old<<seqBits|low, p.old<<seqBits|p.upTo, b.hooks.eventsAtOnce())
	if err != nil || !found {
		return false, err
	}
	return true, b.transact(pointUniting, pointUnited, func() error {
		// A session writes on in its file meanwhile, also of what is of origins that the
		// file had not met before.
		if err := b.meetOrigins(); err != nil {
			return err
		}
		if err := b.c.exec(`INSERT INTO main.event (id, ts, kind, graph, creature, turn, attempt, channel, seq, headers, payload, cause)
			SELECT id + ?1, ts, kind, graph, creature,
				CASE WHEN turn >> 40 = ?2 THEN turn + ?1 ELSE (SELECT new << 40 FROM renumber WHERE old = turn >> 40) | (turn & 0xffffffffff) END,
				attempt, channel, seq, headers, payload,
				CASE WHEN cause >> 40 = ?2 THEN cause + ?1 ELSE (SELECT new << 40 FROM renumber WHERE old = cause >> 40) | (cause & 0xffffffffff) END
			FROM parent.event WHERE id > ?3 AND id <= ?4 ORDER BY id`,
			(p.new-p.old)<<seqBits, p.old, p.old<<seqBits|low, last); err != nil {
			return err
		}
		if err := b.w.indexFrom(strconv.FormatInt(p.new<<seqBits|low, 10), strconv.FormatInt((p.new+1)<<seqBits, 10)); err != nil {
			return err
		}
		return b.w.indexedAll()
	})
}

// finish takes over the live rows and the identity of the attached session, and
// what has been written to it since it was united. The file is then whole, and
// durable.
func (b *builder) finish(ctx context.Context, path string, mode fileMode) error {
	if err := b.c.tempo(true); err != nil {
		return err
	}
	if err := b.unite(ctx, path, mode); err != nil {
		return err
	}
	return b.c.attached(path, mode, func() error {
		return b.transact(pointFinishing, pointFinished, func() error {
			if err := takeAllRows(b.c); err != nil {
				return err
			}
			if err := b.noteKept(); err != nil {
				return err
			}
			if err := b.forgetChanges(); err != nil {
				return err
			}
			return b.c.exec("DELETE FROM main.store WHERE key IN ('incomplete', 'unused', 'moved')")
		})
	})
}

// lacks names events that should be in the file by now and are not: what the
// ancestors wrote.
func (b *builder) lacks(inherited map[engine.Origin]uint64) error {
	if b.pruned > 0 {
		return nil
	}
	for origin, highest := range inherited {
		_, found, err := b.c.integer("SELECT 1 FROM event WHERE id = (SELECT no << 40 FROM origin WHERE uuid = ?) | ?", origin[:], int64(highest))
		if err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("the event %s is in none of the files", engine.EventID{Origin: origin, Seq: highest})
		}
	}
	return nil
}
