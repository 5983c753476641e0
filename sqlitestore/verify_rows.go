package sqlitestore

import (
	"github.com/seed47132306/terrarium/sqlitestore/internal/sqlite"

	"context"
	"fmt"
)

// strangers finds live rows that do not fit together, and returns a line for each. A
// backlog may outlive its channel here: the channel was removed, or has been in another
// graph since a split.
const strangers = `
SELECT 'the cursor of ' || c.reader || ' in ' || c.channel || ' stands at ' || c.seq || ', beyond the head ' || coalesce(h.seq, 0)
	FROM cursor c LEFT JOIN head h ON h.channel = c.channel WHERE c.until = 0 AND c.seq > coalesce(h.seq, 0)
UNION ALL SELECT 'the backlog of ' || c.reader || ' in ' || c.channel || ' ends at ' || c.until || ', beyond the head ' || h.seq
	FROM cursor c JOIN head h ON h.channel = c.channel WHERE c.until > h.seq
UNION ALL SELECT 'the backlog of ' || reader || ' in ' || channel || ' stands at ' || seq || ', beyond its end ' || until
	FROM cursor WHERE until <> 0 AND seq > until
UNION ALL SELECT 'the cursor of ' || reader || ' is in the channel ' || channel || ', which does not exist'
	FROM cursor WHERE until = 0 AND channel NOT IN (SELECT id FROM channel)
UNION ALL SELECT 'the cursor in ' || channel || ' is of the creature ' || reader || ', which does not exist'
	FROM cursor WHERE substr(reader, 1, 7) <> 'reader:' AND reader NOT IN (SELECT id FROM creature)
UNION ALL SELECT 'the edge of ' || creature || ' is to the channel ' || channel || ', which does not exist'
	FROM edge WHERE channel NOT IN (SELECT id FROM channel)
UNION ALL SELECT 'the edge to ' || channel || ' is of the creature ' || creature || ', which does not exist'
	FROM edge WHERE creature NOT IN (SELECT id FROM creature)
UNION ALL SELECT 'the head is of the channel ' || channel || ', which does not exist'
	FROM head WHERE channel NOT IN (SELECT id FROM channel)
UNION ALL SELECT 'the producer ' || producer || ' is of the channel ' || channel || ', which does not exist'
	FROM producer WHERE channel NOT IN (SELECT id FROM channel)
UNION ALL SELECT 'the inbox ' || id || ' is of the creature ' || inbox || ', which does not exist'
	FROM channel WHERE inbox <> '' AND inbox NOT IN (SELECT id FROM creature)
UNION ALL SELECT 'the state ' || key || ' is of the creature ' || creature || ', which does not exist'
	FROM state_value WHERE creature NOT IN (SELECT id FROM creature)
UNION ALL SELECT 'the timer ' || name || ' is of the creature ' || creature || ', which does not exist'
	FROM timer WHERE creature NOT IN (SELECT id FROM creature)
UNION ALL SELECT 'the request ' || lower(hex(o.uuid)) || '-' || (r.id & 0xffffffffff) || ' is of the creature ' || r.creature || ', which does not exist'
	FROM request r LEFT JOIN origin o ON o.no = r.id >> 40 WHERE r.creature NOT IN (SELECT id FROM creature)
UNION ALL SELECT 'the output wire ' || id || ' is of the creature ' || source || ', which does not exist'
	FROM wire WHERE source NOT IN (SELECT id FROM creature)`

// oddRows describes the rows that do not fit together. Dead letters may outlive their
// creature.
func (s *snapshot) oddRows(ctx context.Context) (lines []string, err error) {
	err = sqlite.Each(ctx, s.tx, func(scan func(...any) error) error {
		var line string
		err := scan(&line)
		lines = append(lines, line)
		return err
	}, strangers)
	return lines, err
}

// integrity returns what SQLite finds wrong with the file.
func (s *snapshot) integrity(ctx context.Context) (lines []string, err error) {
	err = sqlite.Each(ctx, s.tx, func(scan func(...any) error) error {
		var line string
		err := scan(&line)
		if line != "ok" {
			lines = append(lines, line)
		}
		return err
	}, "PRAGMA integrity_check")
	return lines, err
}

// oddIndex compares the index of messages with the log.
func (s *snapshot) oddIndex(ctx context.Context) (lines []string, err error) {
	err = sqlite.Each(ctx, s.tx, func(scan func(...any) error) error {
		var indexed, messages, wrong int64
		err := scan(&indexed, &messages, &wrong)
		if err == nil && (indexed != messages || wrong > 0) {
			lines = append(lines, fmt.Sprintf("the index of messages has %d entries, %d of them wrong, and the log has %d messages", indexed, wrong, messages))
		}
		return err
	}, `SELECT (SELECT count(*) FROM message),
		(SELECT count(*) FROM event WHERE id <= (SELECT through FROM indexed) AND `+isMessage+` AND channel IS NOT NULL AND seq IS NOT NULL),
		(SELECT count(*) FROM message m LEFT JOIN event e ON e.id = m.event WHERE e.channel IS NOT m.channel OR e.seq IS NOT m.seq)`)
	return lines, err
}
