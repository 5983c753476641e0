package sqlitestore

import (
	"github.com/seed47132306/terrarium/engine"
)

// belongings are the creatures and channels whose live rows a child takes over.
type belongings struct {
	creatures []engine.CreatureID
	channels  []engine.ChannelID
}

// makeRoom makes the temporary tables that load fills.
func (belongings) makeRoom(c *conn) error {
	for _, query := range []string{
		"PRAGMA temp_store = MEMORY",
		"CREATE TEMP TABLE owned_creature (id TEXT PRIMARY KEY) WITHOUT ROWID",
		"CREATE TEMP TABLE owned_channel (id TEXT PRIMARY KEY) WITHOUT ROWID",
	} {
		if err := c.exec(query); err != nil {
			return err
		}
	}
	return nil
}

// load puts them into temporary tables, where statements can look them up.
func (o belongings) load(c *conn) error {
	for _, id := range o.creatures {
		if err := c.exec("INSERT OR IGNORE INTO owned_creature (id) VALUES (?)", string(id)); err != nil {
			return err
		}
	}
	for _, id := range o.channels {
		if err := c.exec("INSERT OR IGNORE INTO owned_channel (id) VALUES (?)", string(id)); err != nil {
			return err
		}
	}
	return nil
}

// theirs are the dead letters that the owner takes over: those of its creatures
// or, if a creature is in another graph, those that its creatures sent.
const theirs = ` FROM parent.letter WHERE creature IN (SELECT id FROM owned_creature)
	OR sender IN (SELECT id FROM owned_creature) AND creature NOT IN (SELECT id FROM parent.creature)`

// takeLiveRows takes over what the owner of belongings has in the attached
// database parent and its first record does not bring along: cursors of outside
// readers go with the channel, dead letters with the creature.
func takeLiveRows(c *conn) error {
	for _, query := range []string{
		"INSERT OR REPLACE INTO main.state_value SELECT * FROM parent.state_value WHERE creature IN (SELECT id FROM owned_creature)",
		"INSERT OR REPLACE INTO main.producer SELECT * FROM parent.producer WHERE channel IN (SELECT id FROM owned_channel)",
		`INSERT OR REPLACE INTO main.cursor SELECT * FROM parent.cursor
			WHERE substr(reader, 1, 7) = 'reader:' AND channel IN (SELECT id FROM owned_channel)`,
		`INSERT OR IGNORE INTO main.origin (uuid) SELECT uuid FROM parent.origin WHERE no IN (
			SELECT id >> 40` + theirs + ` UNION SELECT message >> 40` + theirs + `) ORDER BY no`,
		"INSERT OR REPLACE INTO main.letter SELECT " + letterColumns + theirs,
	} {
		if err := c.exec(query); err != nil {
			return err
		}
	}
	return nil
}

// takeAllRows takes over all live rows of the attached database parent, whose
// origins are known here, in place of those that are here.
func takeAllRows(c *conn) error {
	for _, table := range []string{"store", "meta", "creature", "channel", "head", "edge", "cursor", "state_value", "producer", "timer", "own"} {
		if err := c.exec("DELETE FROM main." + table); err != nil {
			return err
		}
		if err := c.exec("INSERT INTO main." + table + " SELECT * FROM parent." + table); err != nil {
			return err
		}
	}
	for _, query := range []string{
		"DELETE FROM main.request",
		"INSERT INTO main.request SELECT " + renumbered("id") + ", creature, tag, deadline FROM parent.request",
		"DELETE FROM main.letter",
		"INSERT INTO main.letter SELECT " + letterColumns + " FROM parent.letter",
	} {
		if err := c.exec(query); err != nil {
			return err
		}
	}
	return nil
}

var letterColumns = renumbered("id") + ", ts, creature, " + renumbered("message") +
	", kind, channel, seq, sender, alias, reason, attempts, error, last_words, headers, payload"

// renumbered is the value of a column of packed ids of the database parent, with
// the origins that they have here.
func renumbered(column string) string {
	return "(SELECT o.no << 40 FROM parent.origin p JOIN main.origin o ON o.uuid = p.uuid WHERE p.no = " + column + " >> 40) | (" +
		column + " & 0xffffffffff)"
}
