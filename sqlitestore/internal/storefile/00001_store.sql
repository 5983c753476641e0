PRAGMA application_id = 0x54455253; -- "TERS"
PRAGMA user_version = 1;

-- Facts about this file: session, graph, born, durability, created, cut. The key
-- "unused" marks a file that the catalogue has not accepted yet; only a file
-- with this key may be deleted as a leftover.
CREATE TABLE store (
	key   TEXT PRIMARY KEY,
	value TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO store (key, value) VALUES ('unused', '1');

-- Other metadata: recipe path, recipe text, deployment and so on.
CREATE TABLE meta (
	key   TEXT PRIMARY KEY,
	value TEXT NOT NULL
) WITHOUT ROWID;

-- Origins, numbered for this file only. A row exists for every origin that an
-- event here has or refers to.
CREATE TABLE origin (
	no   INTEGER PRIMARY KEY,
	uuid BLOB NOT NULL UNIQUE CHECK (length(uuid) = 16)
);

-- Events. id, turn and cause are packed: origin.no << 40 | number of the event
-- in its origin. Fields that do not apply are NULL.
CREATE TABLE event (
	id       INTEGER PRIMARY KEY,
	ts       INTEGER NOT NULL, -- nanoseconds since 1970, increasing within an origin
	kind     INTEGER NOT NULL,
	graph    TEXT,
	creature TEXT,
	turn     INTEGER,
	attempt  INTEGER,
	channel  TEXT,
	seq      INTEGER,
	headers  BLOB,
	payload  BLOB,
	cause    INTEGER
);

-- Messages by channel and number. Updating this index with every append would
-- touch a page per channel and more than halve the speed of appending. It is
-- therefore updated for some thousand messages at a time: it has the events up
-- to indexed.through, and only a few events follow.
CREATE TABLE message (
	channel TEXT NOT NULL,
	seq     INTEGER NOT NULL,
	event   INTEGER NOT NULL, -- event.id
	PRIMARY KEY (channel, seq, event)
) WITHOUT ROWID;
CREATE TABLE indexed (
	through INTEGER NOT NULL -- event.id; there is one row
);
INSERT INTO indexed (through) VALUES (0);

-- The rows of the following tables are live rows: the state of the graph to
-- which this store belongs, while the store is live according to the catalogue.
CREATE TABLE creature (
	id         TEXT PRIMARY KEY,
	name       TEXT NOT NULL,
	deployment TEXT NOT NULL,
	address    TEXT NOT NULL,
	born       INTEGER NOT NULL,
	parent     TEXT NOT NULL,
	privileged INTEGER NOT NULL,
	root       INTEGER NOT NULL,
	stopped    INTEGER NOT NULL,
	started    INTEGER NOT NULL,
	module     TEXT NOT NULL,
	sha256     TEXT NOT NULL,
	spec       BLOB
);

CREATE TABLE channel (
	id          TEXT PRIMARY KEY,
	name        TEXT NOT NULL,
	description TEXT NOT NULL,
	deployment  TEXT NOT NULL,
	address     TEXT NOT NULL,
	born        INTEGER NOT NULL,
	report      INTEGER NOT NULL,
	inbox       TEXT NOT NULL
);

CREATE TABLE head (
	channel TEXT PRIMARY KEY,
	seq     INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE edge (
	creature  TEXT NOT NULL,
	channel   TEXT NOT NULL,
	direction INTEGER NOT NULL, -- 1 listen, 2 send
	alias     TEXT NOT NULL,
	ord       INTEGER NOT NULL,
	PRIMARY KEY (creature, channel, direction)
) WITHOUT ROWID;

CREATE TABLE cursor (
	reader  TEXT NOT NULL,
	channel TEXT NOT NULL,
	seq     INTEGER NOT NULL,
	until   INTEGER NOT NULL, -- 0: the edge exists; otherwise the end of a backlog
	alias   TEXT NOT NULL,    -- of a backlog
	PRIMARY KEY (reader, channel, until)
) WITHOUT ROWID;

CREATE TABLE state_value (
	creature TEXT NOT NULL,
	key      TEXT NOT NULL,
	value    BLOB,
	PRIMARY KEY (creature, key)
);

CREATE TABLE producer (
	channel  TEXT NOT NULL,
	producer TEXT NOT NULL,
	offset   INTEGER NOT NULL,
	PRIMARY KEY (channel, producer)
) WITHOUT ROWID;

CREATE TABLE timer (
	creature TEXT NOT NULL,
	name     TEXT NOT NULL,
	due      INTEGER NOT NULL, -- nanoseconds since 1970
	period   INTEGER NOT NULL, -- nanoseconds; 0: once
	payload  BLOB,
	PRIMARY KEY (creature, name)
);

-- Requests that have not been answered.
CREATE TABLE request (
	id       INTEGER PRIMARY KEY, -- of the message, packed as in event
	creature TEXT NOT NULL,       -- the creature that sent the request
	tag      INTEGER NOT NULL,
	deadline INTEGER NOT NULL
);

-- Deliveries that were not handled. Those of a removed creature stay here.
CREATE TABLE letter (
	id         INTEGER PRIMARY KEY, -- of the dead_letter event, packed as in event
	ts         INTEGER NOT NULL,
	creature   TEXT NOT NULL,
	message    INTEGER,             -- packed; NULL if it was never in a log
	kind       INTEGER NOT NULL,    -- of the message
	channel    TEXT NOT NULL,
	seq        INTEGER NOT NULL,
	sender     TEXT NOT NULL,
	alias      TEXT NOT NULL,       -- the alias under which it was sent, if no edge led anywhere
	reason     TEXT NOT NULL,
	attempts   INTEGER NOT NULL,
	error      TEXT NOT NULL,
	last_words TEXT NOT NULL,
	headers    BLOB,
	payload    BLOB
);

-- Lineage: one row for each parent of this session and of each of its ancestors,
-- so that the lineage of a copied file is known. Rows are only added. A session
-- without parents has one row, whose parent is NULL.
CREATE TABLE ancestor (
	session   TEXT NOT NULL,
	ordinal   INTEGER NOT NULL,
	parent    TEXT, -- "volatile" for a graph that had no store
	graph     TEXT NOT NULL,
	created   INTEGER NOT NULL,
	merged_at INTEGER NOT NULL, -- 0 if it did not result from a merge
	split_at  INTEGER NOT NULL, -- 0 if it did not result from a split
	PRIMARY KEY (session, ordinal)
) WITHOUT ROWID;

-- The views are the published interface of a store. Their names and columns stay.
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
