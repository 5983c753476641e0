PRAGMA application_id = 0x54455243; -- "TERC"
PRAGMA user_version = 1;

-- One row per cut. Its transaction is what makes a cut happen.
CREATE TABLE cut (
	id   TEXT PRIMARY KEY,
	kind TEXT NOT NULL, -- merge, split, rearrange
	at   INTEGER NOT NULL
) WITHOUT ROWID;

-- Every session of the directory; the file is stores/<session>.db.
CREATE TABLE store (
	no         INTEGER PRIMARY KEY, -- increasing: younger sessions have higher numbers
	session    TEXT NOT NULL UNIQUE,
	graph      TEXT NOT NULL,
	born       INTEGER NOT NULL,
	durability TEXT NOT NULL,    -- normal, full
	live       INTEGER NOT NULL, -- 0: ended, never written again
	complete   INTEGER NOT NULL, -- whether its file has its whole history
	created    INTEGER NOT NULL,
	merged_at  INTEGER NOT NULL,
	split_at   INTEGER NOT NULL,
	cut        TEXT REFERENCES cut (id), -- the cut that made it; NULL if it was created
	ended_by   TEXT REFERENCES cut (id)  -- the cut that ended it; NULL if live or retired
);

CREATE TABLE parent (
	child   TEXT NOT NULL REFERENCES store (session),
	ordinal INTEGER NOT NULL,
	parent  TEXT NOT NULL, -- "volatile" for a graph that had no store
	PRIMARY KEY (child, ordinal)
) WITHOUT ROWID;

-- The published interface of the catalogue. Names and columns stay. (The order of
-- parents comes from the subquery: many systems that read this file have an SQLite
-- that does not know ORDER BY inside of an aggregate.)
CREATE VIEW sessions AS
SELECT session, graph, live, complete, durability, created, merged_at, split_at,
	(SELECT group_concat(parent, ' ') FROM (SELECT parent FROM parent p WHERE p.child = s.session ORDER BY p.ordinal)) AS parents
FROM store s ORDER BY no;
