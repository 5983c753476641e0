PRAGMA user_version = 6;

-- Every table is made again with the option STRICT, so that a column has only values of
-- its type. The earlier migrations describe the columns. This one adds the two columns
-- called sum.
--
-- event.sum: the low half is a checksum (CRC-32C) of the content of the event. The high
-- half is a checksum of the low half and of the high half of the previous event, which
-- chains the events of an origin. Both are independent of the numbers that origins have
-- in a file. If the high half is zero, the event belongs to no chain: it is older than
-- this migration, which computes only the low half. change.sum: a checksum of the row.

DROP VIEW events;
DROP VIEW lineage;
DROP VIEW cursors;
DROP VIEW state;
DROP VIEW creatures;
DROP VIEW channels;
DROP VIEW timers;
DROP VIEW requests;
DROP VIEW dead_letters;
DROP VIEW wires;

CREATE TABLE new_store (
	key TEXT PRIMARY KEY,
	value TEXT NOT NULL
) WITHOUT ROWID, STRICT;
INSERT INTO new_store (key, value)
SELECT key, value FROM store;

CREATE TABLE new_meta (
	key TEXT PRIMARY KEY,
	value TEXT NOT NULL
) WITHOUT ROWID, STRICT;
INSERT INTO new_meta (key, value)
SELECT key, value FROM meta;

CREATE TABLE new_origin (
	no INTEGER PRIMARY KEY,
	uuid BLOB NOT NULL UNIQUE CHECK (length(uuid) = 16)
) STRICT;
INSERT INTO new_origin (no, uuid)
SELECT no, uuid FROM origin;

CREATE TABLE new_event (
	id INTEGER PRIMARY KEY,
	ts INTEGER NOT NULL,
	kind INTEGER NOT NULL,
	graph TEXT,
	creature TEXT,
	turn INTEGER,
	attempt INTEGER,
	channel TEXT,
	seq INTEGER,
	headers BLOB,
	payload BLOB,
	cause INTEGER,
	sum INTEGER NOT NULL
) STRICT;
INSERT INTO new_event (id, ts, kind, graph, creature, turn, attempt, channel, seq, headers, payload, cause, sum)
SELECT id, ts, kind, graph, creature, turn, attempt, channel, seq, headers, payload, cause,
	event_sum((SELECT uuid FROM origin WHERE no = id >> 40), id & 0xffffffffff, ts, kind, graph, creature,
		(SELECT uuid FROM origin WHERE no = turn >> 40), turn & 0xffffffffff, attempt, channel, seq, headers, payload,
		(SELECT uuid FROM origin WHERE no = cause >> 40), cause & 0xffffffffff)
FROM event ORDER BY id;

CREATE TABLE new_message (
	channel TEXT NOT NULL,
	seq INTEGER NOT NULL,
	event INTEGER NOT NULL,
	PRIMARY KEY (channel, seq, event)
) WITHOUT ROWID, STRICT;
INSERT INTO new_message (channel, seq, event)
SELECT channel, seq, event FROM message;

CREATE TABLE new_indexed (
	through INTEGER NOT NULL
) STRICT;
INSERT INTO new_indexed (through)
SELECT through FROM indexed;

CREATE TABLE new_creature (
	id TEXT PRIMARY KEY,
	name TEXT NOT NULL,
	deployment TEXT NOT NULL,
	address TEXT NOT NULL,
	born INTEGER NOT NULL,
	parent TEXT NOT NULL,
	privileged INTEGER NOT NULL CHECK (privileged IN (0, 1)),
	root INTEGER NOT NULL CHECK (root IN (0, 1)),
	stopped INTEGER NOT NULL CHECK (stopped IN (0, 1)),
	started INTEGER NOT NULL CHECK (started IN (0, 1)),
	module TEXT NOT NULL,
	sha256 TEXT NOT NULL,
	spec BLOB
) STRICT;
INSERT INTO new_creature (id, name, deployment, address, born, parent, privileged, root, stopped, started, module, sha256, spec)
SELECT id, name, deployment, address, born, parent, privileged, root, stopped, started, module, sha256, spec FROM creature;

CREATE TABLE new_channel (
	id TEXT PRIMARY KEY,
	name TEXT NOT NULL,
	description TEXT NOT NULL,
	deployment TEXT NOT NULL,
	address TEXT NOT NULL,
	born INTEGER NOT NULL,
	report INTEGER NOT NULL CHECK (report IN (0, 1)),
	inbox TEXT NOT NULL
) STRICT;
INSERT INTO new_channel (id, name, description, deployment, address, born, report, inbox)
SELECT id, name, description, deployment, address, born, report, inbox FROM channel;

CREATE TABLE new_head (
	channel TEXT PRIMARY KEY,
	seq INTEGER NOT NULL
) WITHOUT ROWID, STRICT;
INSERT INTO new_head (channel, seq)
SELECT channel, seq FROM head;

CREATE TABLE new_edge (
	creature TEXT NOT NULL,
	channel TEXT NOT NULL,
	direction INTEGER NOT NULL CHECK (direction IN (1, 2)),
	alias TEXT NOT NULL,
	ord INTEGER NOT NULL,
	PRIMARY KEY (creature, channel, direction)
) WITHOUT ROWID, STRICT;
INSERT INTO new_edge (creature, channel, direction, alias, ord)
SELECT creature, channel, direction, alias, ord FROM edge;

CREATE TABLE new_cursor (
	reader TEXT NOT NULL,
	channel TEXT NOT NULL,
	seq INTEGER NOT NULL,
	until INTEGER NOT NULL,
	alias TEXT NOT NULL,
	PRIMARY KEY (reader, channel, until)
) WITHOUT ROWID, STRICT;
INSERT INTO new_cursor (reader, channel, seq, until, alias)
SELECT reader, channel, seq, until, alias FROM cursor;

CREATE TABLE new_state_value (
	creature TEXT NOT NULL,
	key TEXT NOT NULL,
	value BLOB,
	PRIMARY KEY (creature, key)
) STRICT;
INSERT INTO new_state_value (creature, key, value)
SELECT creature, key, value FROM state_value;

CREATE TABLE new_producer (
	channel TEXT NOT NULL,
	producer TEXT NOT NULL,
	offset INTEGER NOT NULL,
	PRIMARY KEY (channel, producer)
) WITHOUT ROWID, STRICT;
INSERT INTO new_producer (channel, producer, offset)
SELECT channel, producer, offset FROM producer;

CREATE TABLE new_timer (
	creature TEXT NOT NULL,
	name TEXT NOT NULL,
	due INTEGER NOT NULL,
	period INTEGER NOT NULL,
	payload BLOB,
	PRIMARY KEY (creature, name)
) STRICT;
INSERT INTO new_timer (creature, name, due, period, payload)
SELECT creature, name, due, period, payload FROM timer;

CREATE TABLE new_request (
	id INTEGER PRIMARY KEY,
	creature TEXT NOT NULL,
	tag INTEGER NOT NULL,
	deadline INTEGER NOT NULL
) STRICT;
INSERT INTO new_request (id, creature, tag, deadline)
SELECT id, creature, tag, deadline FROM request;

CREATE TABLE new_letter (
	id INTEGER PRIMARY KEY,
	ts INTEGER NOT NULL,
	creature TEXT NOT NULL,
	message INTEGER,
	kind INTEGER NOT NULL,
	channel TEXT NOT NULL,
	seq INTEGER NOT NULL,
	sender TEXT NOT NULL,
	alias TEXT NOT NULL,
	reason TEXT NOT NULL,
	attempts INTEGER NOT NULL,
	error TEXT NOT NULL,
	last_words TEXT NOT NULL,
	headers BLOB,
	payload BLOB
) STRICT;
INSERT INTO new_letter (id, ts, creature, message, kind, channel, seq, sender, alias, reason, attempts, error, last_words, headers, payload)
SELECT id, ts, creature, message, kind, channel, seq, sender, alias, reason, attempts, error, last_words, headers, payload FROM letter;

CREATE TABLE new_ancestor (
	session TEXT NOT NULL,
	ordinal INTEGER NOT NULL,
	parent TEXT,
	graph TEXT NOT NULL,
	created INTEGER NOT NULL,
	merged_at INTEGER NOT NULL,
	split_at INTEGER NOT NULL,
	born INTEGER,
	durability TEXT,
	cut TEXT,
	kind TEXT,
	PRIMARY KEY (session, ordinal)
) WITHOUT ROWID, STRICT;
INSERT INTO new_ancestor (session, ordinal, parent, graph, created, merged_at, split_at, born, durability, cut, kind)
SELECT session, ordinal, parent, graph, created, merged_at, split_at, born, durability, cut, kind FROM ancestor;

CREATE TABLE new_own (
	uuid BLOB PRIMARY KEY CHECK (length(uuid) = 16)
) WITHOUT ROWID, STRICT;
INSERT INTO new_own (uuid)
SELECT uuid FROM own;

CREATE TABLE new_wrote (
	session TEXT NOT NULL,
	uuid BLOB NOT NULL CHECK (length(uuid) = 16),
	highest INTEGER NOT NULL,
	PRIMARY KEY (session, uuid)
) WITHOUT ROWID, STRICT;
INSERT INTO new_wrote (session, uuid, highest)
SELECT session, uuid, highest FROM wrote;

CREATE TABLE new_wire (
	id TEXT PRIMARY KEY,
	name TEXT NOT NULL,
	source TEXT NOT NULL,
	target TEXT NOT NULL,
	with_content INTEGER NOT NULL CHECK (with_content IN (0, 1)),
	prompt TEXT NOT NULL,
	predicate TEXT NOT NULL,
	allow_self INTEGER NOT NULL CHECK (allow_self IN (0, 1)),
	ord INTEGER NOT NULL
) WITHOUT ROWID, STRICT;
INSERT INTO new_wire (id, name, source, target, with_content, prompt, predicate, allow_self, ord)
SELECT id, name, source, target, with_content, prompt, predicate, allow_self, ord FROM wire;

CREATE TABLE new_change (
	event INTEGER NOT NULL,
	part INTEGER NOT NULL,
	first INTEGER NOT NULL,
	base INTEGER NOT NULL CHECK (base IN (0, 1)),
	rows TEXT NOT NULL,
	sum INTEGER NOT NULL,
	PRIMARY KEY (event, part)
) WITHOUT ROWID, STRICT;
INSERT INTO new_change (event, part, first, base, rows, sum)
SELECT event, part, first, base, rows,
	change_sum((SELECT uuid FROM origin WHERE no = event >> 40), event & 0xffffffffff, part, first & 0xffffffffff, base, rows) FROM change;

DROP TABLE store;
DROP TABLE meta;
DROP TABLE origin;
DROP TABLE event;
DROP TABLE message;
DROP TABLE indexed;
DROP TABLE creature;
DROP TABLE channel;
DROP TABLE head;
DROP TABLE edge;
DROP TABLE cursor;
DROP TABLE state_value;
DROP TABLE producer;
DROP TABLE timer;
DROP TABLE request;
DROP TABLE letter;
DROP TABLE ancestor;
DROP TABLE own;
DROP TABLE wrote;
DROP TABLE wire;
DROP TABLE change;
ALTER TABLE new_store RENAME TO store;
ALTER TABLE new_meta RENAME TO meta;
ALTER TABLE new_origin RENAME TO origin;
ALTER TABLE new_event RENAME TO event;
ALTER TABLE new_message RENAME TO message;
ALTER TABLE new_indexed RENAME TO indexed;
ALTER TABLE new_creature RENAME TO creature;
ALTER TABLE new_channel RENAME TO channel;
ALTER TABLE new_head RENAME TO head;
ALTER TABLE new_edge RENAME TO edge;
ALTER TABLE new_cursor RENAME TO cursor;
ALTER TABLE new_state_value RENAME TO state_value;
ALTER TABLE new_producer RENAME TO producer;
ALTER TABLE new_timer RENAME TO timer;
ALTER TABLE new_request RENAME TO request;
ALTER TABLE new_letter RENAME TO letter;
ALTER TABLE new_ancestor RENAME TO ancestor;
ALTER TABLE new_own RENAME TO own;
ALTER TABLE new_wrote RENAME TO wrote;
ALTER TABLE new_wire RENAME TO wire;
ALTER TABLE new_change RENAME TO change;

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

CREATE VIEW lineage AS
SELECT session, parent, graph, created, merged_at, split_at FROM ancestor;

CREATE VIEW cursors AS
SELECT c.reader AS reader, c.channel AS channel, c.seq AS seq, nullif(c.until, 0) AS until,
	max(coalesce(nullif(c.until, 0), h.seq, c.seq) - c.seq, 0) AS pending
FROM cursor c LEFT JOIN head h ON h.channel = c.channel;

CREATE VIEW state AS
SELECT creature, key, value FROM state_value;

CREATE VIEW creatures AS
SELECT id, name, deployment, address, born, parent, privileged, root, stopped, started, module, sha256, spec FROM creature;

CREATE VIEW channels AS
SELECT c.id AS id, c.name AS name, c.description AS description, c.deployment AS deployment, c.address AS address,
	c.born AS born, c.report AS report, c.inbox AS inbox, coalesce(h.seq, 0) AS head
FROM channel c LEFT JOIN head h ON h.channel = c.id;

CREATE VIEW timers AS
SELECT creature, name, due, nullif(period, 0) AS period, payload FROM timer;

CREATE VIEW requests AS
SELECT lower(hex(o.uuid)) || '-' || (r.id & 0xffffffffff) AS id, r.creature AS creature, r.tag AS tag, r.deadline AS deadline
FROM request r JOIN origin o ON o.no = r.id >> 40;

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

CREATE VIEW wires AS
SELECT id, nullif(name, '') AS name, source, target, with_content, nullif(prompt, '') AS prompt,
	nullif(predicate, '') AS predicate, allow_self, ord AS place
FROM wire;
