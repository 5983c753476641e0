PRAGMA user_version = 5;

-- Whose files an incomplete session needs beside its own. Those of its parents, unless its
-- own file has what the parent's has: then those that the parent needs itself.
CREATE TABLE need (
	session TEXT NOT NULL,
	needed  TEXT NOT NULL,
	PRIMARY KEY (session, needed)
) WITHOUT ROWID, STRICT;
INSERT INTO need (session, needed)
SELECT p.child, p.parent FROM parent p JOIN store s ON s.session = p.child WHERE NOT s.complete AND p.parent <> 'volatile'
GROUP BY p.child, p.parent;

-- How many events the file of an ended session has. If it is not NULL, meta has the
-- metadata in the file. NULL: the file says both.
ALTER TABLE store ADD COLUMN events INTEGER CHECK (events >= 0);
