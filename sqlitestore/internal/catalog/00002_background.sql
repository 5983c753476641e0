PRAGMA user_version = 2;

-- The file of a session, in stores/. NULL: it has been removed, because the files
-- of its descendants have all of its history.
ALTER TABLE store ADD COLUMN file TEXT;
UPDATE store SET file = session || '.db';

-- The metadata of a session whose file has been removed, as JSON.
ALTER TABLE store ADD COLUMN meta TEXT NOT NULL DEFAULT '{}';

-- Which events ended sessions wrote themselves: the events 1 to highest of each
-- origin. A session from an older version of this file has no rows here, and its
-- file is never removed.
CREATE TABLE origin (
	session TEXT NOT NULL REFERENCES store (session),
	uuid    BLOB NOT NULL,
	highest INTEGER NOT NULL,
	PRIMARY KEY (session, uuid)
) WITHOUT ROWID;

-- Files that are being made, each with the whole history of a session: first the
-- content of the file base is copied, then the rest.
CREATE TABLE hydration (
	file    TEXT PRIMARY KEY, -- in stores/
	session TEXT NOT NULL REFERENCES store (session),
	base    TEXT NOT NULL,    -- in stores/; '' if none is copied
	copied  INTEGER NOT NULL  -- bytes of base that have been copied durably; -1: all
) WITHOUT ROWID;

-- Files in stores/ that are no longer needed and are going to be removed.
CREATE TABLE leftover (
	file TEXT PRIMARY KEY
) WITHOUT ROWID;

CREATE INDEX parent_of ON parent (parent);

DROP VIEW sessions;
CREATE VIEW sessions AS
SELECT session, graph, live, complete, durability, created, merged_at, split_at,
	(SELECT group_concat(parent, ' ') FROM (SELECT parent FROM parent p WHERE p.child = s.session ORDER BY p.ordinal)) AS parents,
	file
FROM store s ORDER BY no;
