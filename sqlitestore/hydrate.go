package sqlitestore

import (
	"database/sql/driver"
	"errors"
	"strconv"

	"github.com/seed47132306/terrarium/engine"
)

// belongings are the creatures and channels whose live rows a child takes over.
type belongings struct {
	creatures []engine.CreatureID
	channels  []engine.ChannelID
}

// load puts them into temporary tables, where statements can look them up.
func (o belongings) load(w *writer) error {
	for _, query := range []string{
		"PRAGMA temp_store = MEMORY",
		"CREATE TEMP TABLE owned_creature (id TEXT PRIMARY KEY) WITHOUT ROWID",
		"CREATE TEMP TABLE owned_channel (id TEXT PRIMARY KEY) WITHOUT ROWID",
		"CREATE TEMP TABLE renumber (old INTEGER PRIMARY KEY, new INTEGER NOT NULL)",
	} {
		if err := w.c.exec(query); err != nil {
			return err
		}
	}
	for _, id := range o.creatures {
		if err := w.c.exec("INSERT OR IGNORE INTO owned_creature (id) VALUES (?)", string(id)); err != nil {
			return err
		}
	}
	for _, id := range o.channels {
		if err := w.c.exec("INSERT OR IGNORE INTO owned_channel (id) VALUES (?)", string(id)); err != nil {
			return err
		}
	}
	return nil
}

// copyParent copies the history and the owned live rows of a parent, whose
// writer stands still.
func copyParent(w *writer, path string) error {
	if err := w.c.exec("ATTACH ? AS parent", fileURI(path, readOnly)); err != nil {
		return err
	}
	err := w.c.transact(func() error {
		if err := w.copyHistory(); err != nil {
			return err
		}
		return w.copyLiveRows()
	})
	return errors.Join(err, w.c.exec("DETACH parent"), w.loadOrigins())
}

// copyHistory adds the attached parent's events and lineage.
func (w *writer) copyHistory() error {
	if err := w.c.exec("INSERT OR IGNORE INTO ancestor SELECT * FROM parent.ancestor"); err != nil {
		return err
	}
	_, some, err := w.c.integer("SELECT no FROM main.origin LIMIT 1")
	if err != nil {
		return err
	}
	if some {
		return w.unite()
	}
	// Into an empty file everything goes as it is; SQLite then copies rows
	// without taking them apart.
	for _, query := range []string{
		"INSERT INTO main.origin SELECT * FROM parent.origin",
		"INSERT INTO main.event SELECT * FROM parent.event",
		"INSERT INTO main.message SELECT * FROM parent.message",
	} {
		if err := w.c.exec(query); err != nil {
			return err
		}
	}
	if err := w.indexFrom("(SELECT through FROM parent.indexed)", "0x7fffffffffffffff"); err != nil {
		return err
	}
	return w.indexedAll()
}

// unite adds events whose origins have other numbers here.
func (w *writer) unite() error {
	for _, query := range []string{
		"INSERT INTO main.origin (uuid) SELECT uuid FROM parent.origin WHERE uuid NOT IN (SELECT uuid FROM main.origin) ORDER BY no",
		"DELETE FROM renumber",
		"INSERT INTO renumber (old, new) SELECT p.no, o.no FROM parent.origin p JOIN main.origin o ON o.uuid = p.uuid",
	} {
		if err := w.c.exec(query); err != nil {
			return err
		}
	}
	type pair struct{ old, new int64 }
	var pairs []pair
	err := w.c.query("SELECT old, new FROM renumber ORDER BY new", nil, func(v []driver.Value) error {
		pairs = append(pairs, pair{v[0].(int64), v[1].(int64)})
		return nil
	})
	if err != nil {
		return err
	}
	for _, p := range pairs {
		if err := w.uniteOrigin(p.old, p.new); err != nil {
			return err
		}
	}
	return w.indexedAll()
}

// uniteOrigin adds the events of one origin. Where both sides have it, one has
// a beginning of what the other has, so what both have is skipped unread.
func (w *writer) uniteOrigin(from, to int64) error {
	low := int64(0) // the number up to which both have the events
	if highest, ok, err := w.c.integer("SELECT max(id) FROM main.event WHERE id > ? AND id < ?", to<<seqBits, (to+1)<<seqBits); err != nil {
		return err
	} else if ok {
		low = highest & seqMask
	}
	err := w.c.exec(`INSERT OR IGNORE INTO main.event (id, ts, kind, graph, creature, turn, attempt, channel, seq, headers, payload, cause)
		SELECT id + ?1, ts, kind, graph, creature,
			CASE WHEN turn >> 40 = ?2 THEN turn + ?1 ELSE (SELECT new << 40 FROM renumber WHERE old = turn >> 40) | (turn & 0xffffffffff) END,
			attempt, channel, seq, headers, payload,
			CASE WHEN cause >> 40 = ?2 THEN cause + ?1 ELSE (SELECT new << 40 FROM renumber WHERE old = cause >> 40) | (cause & 0xffffffffff) END
		FROM parent.event WHERE id > ?3 AND id < ?4 ORDER BY id`,
		(to-from)<<seqBits, from, from<<seqBits|low, (from+1)<<seqBits)
	if err != nil {
		return err
	}
	return w.indexFrom(strconv.FormatInt(to<<seqBits|low, 10), strconv.FormatInt((to+1)<<seqBits, 10))
}

// copyLiveRows takes over what the child owns and its first record does not
// bring along: cursors of outside readers go with the channel, dead letters
// with the creature, or, if that is in another graph, with the sender.
func (w *writer) copyLiveRows() error {
	for _, query := range []string{
		"INSERT OR REPLACE INTO main.state_value SELECT * FROM parent.state_value WHERE creature IN (SELECT id FROM owned_creature)",
		"INSERT OR REPLACE INTO main.producer SELECT * FROM parent.producer WHERE channel IN (SELECT id FROM owned_channel)",
		`INSERT OR REPLACE INTO main.cursor SELECT * FROM parent.cursor
			WHERE substr(reader, 1, 7) = 'reader:' AND channel IN (SELECT id FROM owned_channel)`,
		"INSERT OR REPLACE INTO main.letter SELECT " + renumbered("id") + ", ts, creature, " + renumbered("message") +
			", kind, channel, seq, sender, alias, reason, attempts, error, last_words, headers, payload" +
			" FROM parent.letter WHERE creature IN (SELECT id FROM owned_creature)" +
			" OR sender IN (SELECT id FROM owned_creature) AND creature NOT IN (SELECT id FROM parent.creature)",
	} {
		if err := w.c.exec(query); err != nil {
			return err
		}
	}
	return nil
}

// renumbered is the value of a column of packed ids, with the origins that they
// have here.
func renumbered(column string) string {
	return "(SELECT o.no << 40 FROM parent.origin p JOIN main.origin o ON o.uuid = p.uuid WHERE p.no = " + column + " >> 40) | (" +
		column + " & 0xffffffffff)"
}
