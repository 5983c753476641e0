package sqlitestore

import (
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"

	"errors"
)

// statements are those of a writer.
type statements struct {
	all []*sqlite.Statement

	events, cursors, heads     *sqlite.Bulk
	origin, producer           *sqlite.Statement
	setState, deleteState      *sqlite.Statement
	creature, channel, edge    *sqlite.Statement
	timer, request, letter     *sqlite.Statement
	wire, dropWire             *sqlite.Statement
	dropEdge, dropCursor, meta *sqlite.Statement
	dropTimer, dropRequest     *sqlite.Statement
	dropLetter, change         *sqlite.Statement
	key, ancestor              *sqlite.Statement
	// Those that inherit leave rows alone that another parent has brought.
	inheritChange, inheritAncestor, inheritWrote *sqlite.Statement
	dropCreature, dropChannel                    []*sqlite.Statement
}

func newStatements(c *sqlite.Conn) statements {
	var s statements
	add := func(query string) *sqlite.Statement {
		st := sqlite.NewStatement(c, query)
		s.all = append(s.all, st)
		return st
	}
	into := func(columns int, query string) *sqlite.Bulk {
		b := sqlite.NewBulk(c, columns, query)
		s.all = append(s.all, b.One, b.Many)
		return b
	}
	s.events = into(13, "INSERT INTO event (id, ts, kind, graph, creature, turn, attempt, channel, seq, headers, payload, cause, sum)")
	s.cursors = into(5, "REPLACE INTO cursor (reader, channel, seq, until, alias)")
	s.heads = into(2, "REPLACE INTO head (channel, seq)")
	s.origin = add("INSERT INTO origin (no, uuid) VALUES (?, ?)")
	s.producer = add("REPLACE INTO producer (channel, producer, offset) VALUES (?, ?, ?)")
	s.setState = add("INSERT INTO state_value (creature, key, value) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value")
	s.deleteState = add("DELETE FROM state_value WHERE creature = ? AND key = ?")
	s.creature = add("REPLACE INTO creature (id, name, deployment, address, born, parent, privileged, root, stopped, started, module, sha256, spec) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
	s.channel = add("REPLACE INTO channel (id, name, description, deployment, address, born, report, inbox) VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
	s.edge = add("REPLACE INTO edge (creature, channel, direction, alias, ord) VALUES (?, ?, ?, ?, ?)")
	s.timer = add("INSERT INTO timer (creature, name, due, period, payload) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET due = excluded.due, period = excluded.period, payload = excluded.payload")
	s.request = add("REPLACE INTO request (id, creature, tag, deadline) VALUES (?, ?, ?, ?)")
	s.wire = add("REPLACE INTO wire (id, name, source, target, with_content, prompt, predicate, allow_self, ord) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
	s.letter = add("REPLACE INTO letter (id, ts, creature, message, kind, channel, seq, sender, alias, reason, attempts, error, last_words, headers, payload) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
	s.meta = add("REPLACE INTO meta (key, value) VALUES (?, ?)")
	s.change = add("INSERT INTO change (event, part, first, base, rows, sum) VALUES (?, ?, ?, ?, ?, ?)")
	s.dropEdge = add("DELETE FROM edge WHERE creature = ? AND channel = ? AND direction = ?")
	s.dropCursor = add("DELETE FROM cursor WHERE reader = ? AND channel = ? AND until = ?")
	s.dropTimer = add("DELETE FROM timer WHERE creature = ? AND name = ?")
	s.dropRequest = add("DELETE FROM request WHERE id = ?")
	s.dropWire = add("DELETE FROM wire WHERE id = ?")
	s.dropLetter = add("DELETE FROM letter WHERE id = ?")
	s.key = add("REPLACE INTO store (key, value) VALUES (?, ?)")
	const ancestor = " INTO ancestor (" + ancestorColumns + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
	s.ancestor, s.inheritAncestor = add("REPLACE"+ancestor), add("INSERT OR IGNORE"+ancestor)
	s.inheritChange = add("INSERT OR IGNORE INTO change (" + changeColumns + ") VALUES (?, ?, ?, ?, ?, ?)")
	s.inheritWrote = add("INSERT OR IGNORE INTO wrote (session, uuid, highest) VALUES (?, ?, ?)")
	for _, query := range []string{
		"DELETE FROM creature WHERE id = ?",
		"DELETE FROM state_value WHERE creature = ?",
		"DELETE FROM cursor WHERE reader = ?",
		"DELETE FROM edge WHERE creature = ?",
		"DELETE FROM timer WHERE creature = ?",
		"DELETE FROM request WHERE creature = ?",
		"DELETE FROM wire WHERE source = ?",
	} {
		s.dropCreature = append(s.dropCreature, add(query))
	}
	for _, query := range []string{
		"DELETE FROM channel WHERE id = ?",
		"DELETE FROM head WHERE channel = ?",
		"DELETE FROM cursor WHERE channel = ?",
		"DELETE FROM producer WHERE channel = ?",
		"DELETE FROM edge WHERE channel = ?",
	} {
		s.dropChannel = append(s.dropChannel, add(query))
	}
	return s
}

func (s *statements) close() (err error) {
	for _, st := range s.all {
		err = errors.Join(err, st.Close())
	}
	s.all = nil
	return err
}
