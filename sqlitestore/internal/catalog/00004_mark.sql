PRAGMA user_version = 4;

-- Every table is made again with the option STRICT, so that a column has only values of
-- its type. The earlier migrations describe the columns.

DROP VIEW sessions;
DROP INDEX parent_of;

CREATE TABLE new_cut (
	id TEXT PRIMARY KEY,
	kind TEXT NOT NULL,
	at INTEGER NOT NULL,
	firm INTEGER NOT NULL DEFAULT 1 CHECK (firm IN (0, 1))
) WITHOUT ROWID, STRICT;
INSERT INTO new_cut (id, kind, at, firm)
SELECT id, kind, at, firm FROM cut;

CREATE TABLE new_store (
	no INTEGER PRIMARY KEY,
	session TEXT NOT NULL UNIQUE,
	graph TEXT NOT NULL,
	born INTEGER NOT NULL,
	durability TEXT NOT NULL CHECK (durability IN ('normal', 'full')),
	live INTEGER NOT NULL CHECK (live IN (0, 1)),
	complete INTEGER NOT NULL CHECK (complete IN (0, 1)),
	created INTEGER NOT NULL,
	merged_at INTEGER NOT NULL,
	split_at INTEGER NOT NULL,
	cut TEXT REFERENCES cut (id),
	ended_by TEXT REFERENCES cut (id),
	file TEXT CHECK (file <> '' AND instr(file, '/') = 0),
	meta TEXT NOT NULL DEFAULT '{}'
) STRICT;
INSERT INTO new_store (no, session, graph, born, durability, live, complete, created, merged_at, split_at, cut, ended_by, file, meta)
SELECT no, session, graph, born, durability, live, complete, created, merged_at, split_at, cut, ended_by, file, meta FROM store;

CREATE TABLE new_parent (
	child TEXT NOT NULL REFERENCES store (session),
	ordinal INTEGER NOT NULL,
	parent TEXT NOT NULL,
	PRIMARY KEY (child, ordinal)
) WITHOUT ROWID, STRICT;
INSERT INTO new_parent (child, ordinal, parent)
SELECT child, ordinal, parent FROM parent;

CREATE TABLE new_origin (
	session TEXT NOT NULL REFERENCES store (session),
	uuid BLOB NOT NULL,
	highest INTEGER NOT NULL,
	PRIMARY KEY (session, uuid)
) WITHOUT ROWID, STRICT;
INSERT INTO new_origin (session, uuid, highest)
SELECT session, uuid, highest FROM origin;

CREATE TABLE new_hydration (
	file TEXT PRIMARY KEY CHECK (file <> '' AND instr(file, '/') = 0),
	session TEXT NOT NULL REFERENCES store (session),
	base TEXT NOT NULL CHECK (instr(base, '/') = 0),
	copied INTEGER NOT NULL
) WITHOUT ROWID, STRICT;
INSERT INTO new_hydration (file, session, base, copied)
SELECT file, session, base, copied FROM hydration;

CREATE TABLE new_leftover (
	file TEXT PRIMARY KEY CHECK (file <> '' AND instr(file, '/') = 0)
) WITHOUT ROWID, STRICT;
INSERT INTO new_leftover (file)
SELECT file FROM leftover;

DROP TABLE cut;
DROP TABLE store;
DROP TABLE parent;
DROP TABLE origin;
DROP TABLE hydration;
DROP TABLE leftover;
ALTER TABLE new_cut RENAME TO cut;
ALTER TABLE new_store RENAME TO store;
ALTER TABLE new_parent RENAME TO parent;
ALTER TABLE new_origin RENAME TO origin;
ALTER TABLE new_hydration RENAME TO hydration;
ALTER TABLE new_leftover RENAME TO leftover;

CREATE INDEX parent_of ON parent (parent);

CREATE VIEW sessions AS
SELECT session, graph, live, complete, durability, created, merged_at, split_at,
	(SELECT group_concat(parent, ' ') FROM (SELECT parent FROM parent p WHERE p.child = s.session ORDER BY p.ordinal)) AS parents,
	file
FROM store s ORDER BY no;

-- How far the log of a live session was acknowledged under the origins of earlier
-- processes: the number of the last event, and the high half of its sum. What the current
-- process has acknowledged is in a file beside the catalogue.
CREATE TABLE mark (
	session TEXT NOT NULL,
	uuid    BLOB NOT NULL CHECK (length(uuid) = 16),
	highest INTEGER NOT NULL,
	chain   INTEGER NOT NULL, -- 0: not known
	PRIMARY KEY (session, uuid)
) WITHOUT ROWID, STRICT;

-- Facts about the directory: "home" is its random name. Each store that is made in the
-- directory has the same name under this key.
CREATE TABLE trait (
	key   TEXT PRIMARY KEY,
	value TEXT NOT NULL
) WITHOUT ROWID, STRICT;
