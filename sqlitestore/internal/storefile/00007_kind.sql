PRAGMA user_version = 7;

-- The names of the kinds of events. A program that knows more kinds adds their names when
-- it opens the file for writing, so that a new kind needs no new views.
CREATE TABLE event_kind (
	kind INTEGER PRIMARY KEY,
	name TEXT NOT NULL
) STRICT;

INSERT INTO event_kind (kind, name) VALUES
	(1, 'channel_message'),
	(2, 'turn_ended'),
	(3, 'output'),
	(4, 'state'),
	(5, 'log'),
	(6, 'dead_letter'),
	(7, 'turn_started'),
	(8, 'turn_failed'),
	(9, 'instance_started'),
	(10, 'creature_started'),
	(11, 'creature_stopped'),
	(12, 'creature_failed'),
	(13, 'creature_quarantined'),
	(14, 'output_wire_added'),
	(15, 'output_wire_removed'),
	(16, 'parent_link_changed'),
	(17, 'topology_changed'),
	(18, 'session_forked'),
	(19, 'session_merged'),
	(20, 'creature_session_attached'),
	(21, 'policy_denied'),
	(22, 'lagged'),
	(23, 'direct_message'),
	(24, 'timer'),
	(25, 'request'),
	(26, 'result'),
	(27, 'store_set_aside'),
	(28, 'wired_output'),
	(29, 'module_replaced'),
	(30, 'approval_asked'),
	(31, 'approval_decided');

DROP VIEW events;
DROP VIEW dead_letters;

CREATE VIEW events AS
SELECT lower(hex(o.uuid)) || '-' || (e.id & 0xffffffffff) AS id,
	e.ts AS ts,
	coalesce((SELECT k.name FROM event_kind k WHERE k.kind = e.kind), 'kind_' || e.kind) AS kind,
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

CREATE VIEW dead_letters AS
SELECT lower(hex(o.uuid)) || '-' || (l.id & 0xffffffffff) AS id,
	l.ts AS ts,
	l.creature AS creature,
	(SELECT lower(hex(m.uuid)) || '-' || (l.message & 0xffffffffff) FROM origin m WHERE m.no = l.message >> 40) AS message,
	coalesce((SELECT k.name FROM event_kind k WHERE k.kind = l.kind), 'kind_' || l.kind) AS kind,
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
