PRAGMA user_version = 3;

-- Facts that the catalogue has about sessions whose files may have been removed,
-- so that the catalogue can be rebuilt from the files of their descendants. NULL:
-- not known, because an older version of this file did not record it.
ALTER TABLE ancestor ADD COLUMN born INTEGER;
ALTER TABLE ancestor ADD COLUMN durability TEXT;
ALTER TABLE ancestor ADD COLUMN cut TEXT; -- the cut that made the session; '' if it was created
ALTER TABLE ancestor ADD COLUMN kind TEXT; -- of that cut
UPDATE ancestor SET
	born = (SELECT CAST(value AS INTEGER) FROM store WHERE key = 'born'),
	durability = (SELECT value FROM store WHERE key = 'durability'),
	cut = (SELECT value FROM store WHERE key = 'cut'),
	kind = (SELECT value FROM store WHERE key = 'kind')
WHERE session = (SELECT value FROM store WHERE key = 'session');

-- Which events ended sessions wrote themselves: for each session and origin, the
-- events 1 to highest. A child of a cut gets the rows of the sessions that the cut
-- ends; a file with a whole history gets those of all ancestors.
CREATE TABLE wrote (
	session TEXT NOT NULL,
	uuid    BLOB NOT NULL CHECK (length(uuid) = 16),
	highest INTEGER NOT NULL,
	PRIMARY KEY (session, uuid)
) WITHOUT ROWID;

-- More keys in store. "siblings": all children of the cut that made the session.
-- "retired": the session has ended without a cut. "moved": the session continues
-- in the file that is named. The last two, like "unused", are valid until the
-- session is written to again.
