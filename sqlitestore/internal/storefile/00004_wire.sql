PRAGMA user_version = 4;

-- The output wires of the creatures of this store. A wire is in the store of its
-- source; its target may have been removed.
CREATE TABLE wire (
	id           TEXT PRIMARY KEY,
	name         TEXT NOT NULL,    -- '' if it has none
	source       TEXT NOT NULL,
	target       TEXT NOT NULL,    -- a creature, or 'root'
	with_content INTEGER NOT NULL,
	prompt       TEXT NOT NULL,    -- '' for none
	predicate    TEXT NOT NULL,    -- its name; '' for none
	allow_self   INTEGER NOT NULL,
	ord          INTEGER NOT NULL  -- its place among the wires of its source
) WITHOUT ROWID;

CREATE VIEW wires AS
SELECT id, nullif(name, '') AS name, source, target, with_content, nullif(prompt, '') AS prompt,
	nullif(predicate, '') AS predicate, allow_self, ord AS place
FROM wire;

-- A kind of event was added.
DROP VIEW events;
CREATE VIEW events AS
SELECT lower(hex(o.uuid)) || '-' || (e.id & 0xffffffffff) AS id,
	e.ts AS ts,
	CASE e.kind
		WHEN 1 THEN 'channel_message'
		WHEN 2 THEN 'turn_ended'
		WHEN 3 THEN 'output'
		WHEN 4 THEN 'state'
		WHEN 5 THEN 'log'
		WHEN 6 THEN 'dead_letter'
		WHEN 7 THEN 'turn_started'
		WHEN 8 THEN 'turn_failed'
		WHEN 9 THEN 'instance_started'
		WHEN 10 THEN 'creature_started'
		WHEN 11 THEN 'creature_stopped'
		WHEN 12 THEN 'creature_failed'
		WHEN 13 THEN 'creature_quarantined'
		WHEN 14 THEN 'output_wire_added'
		WHEN 15 THEN 'output_wire_removed'
		WHEN 16 THEN 'parent_link_changed'
		WHEN 17 THEN 'topology_changed'
		WHEN 18 THEN 'session_forked'
		WHEN 19 THEN 'session_merged'
		WHEN 20 THEN 'creature_session_attached'
		WHEN 21 THEN 'policy_denied'
		WHEN 22 THEN 'lagged'
		WHEN 23 THEN 'direct_message'
		WHEN 24 THEN 'timer'
		WHEN 25 THEN 'request'
		WHEN 26 THEN 'result'
		WHEN 27 THEN 'store_set_aside'
		WHEN 28 THEN 'wired_output'
		ELSE 'kind_' || e.kind
	END AS kind,
	e.graph AS graph,
	e.creature AS creature,
	(SELECT lower(hex(t.uuid)) || '-' || (e.turn & 0xffffffffff) FROM origin t WHERE t.no = e.turn >> 40) AS turn,
	e.attempt AS attempt,
	e.channel AS channel,
	e.seq AS seq,
	e.headers AS headers,
	e.payload AS payload,
	(SELECT lower(hex(c.uuid)) || '-' || (e.cause & 0xffffffffff) FROM origin c WHERE c.no = e.cause >> 40) AS cause
FROM event e JOIN origin o ON o.no = e.id >> 40;

DROP VIEW dead_letters;
CREATE VIEW dead_letters AS
SELECT lower(hex(o.uuid)) || '-' || (l.id & 0xffffffffff) AS id,
	l.ts AS ts,
	l.creature AS creature,
	(SELECT lower(hex(m.uuid)) || '-' || (l.message & 0xffffffffff) FROM origin m WHERE m.no = l.message >> 40) AS message,
	CASE l.kind
		WHEN 1 THEN 'channel_message'
		WHEN 3 THEN 'output'
		WHEN 23 THEN 'direct_message'
		WHEN 24 THEN 'timer'
		WHEN 25 THEN 'request'
		WHEN 26 THEN 'result'
		WHEN 28 THEN 'wired_output'
		ELSE 'kind_' || l.kind
	END AS kind,
	nullif(l.channel, '') AS channel,
	nullif(l.seq, 0) AS seq,
	nullif(l.sender, '') AS sender,
	l.reason AS reason,
	l.attempts AS attempts,
	l.error AS error,
	l.last_words AS last_words,
	l.alias AS alias,
	l.headers AS headers,
	l.payload AS payload
FROM letter l JOIN origin o ON o.no = l.id >> 40;
