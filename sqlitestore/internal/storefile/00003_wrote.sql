PRAGMA user_version = 3;

-- What the catalogue says of sessions whose files may be gone, so that it can be
-- made again from the files of their descendants. NULL: not known, because an
-- older version of this file did not say.
ALTER TABLE ancestor ADD COLUMN born INTEGER;
ALTER TABLE ancestor ADD COLUMN durability TEXT;
ALTER TABLE ancestor ADD COLUMN cut TEXT; -- that made the session; '' if it was created
ALTER TABLE ancestor ADD COLUMN kind TEXT; -- of that cut
UPDATE ancestor SET
	born = (SELECT CAST(value AS INTEGER) FROM store WHERE key = 'born'),
	durability = (SELECT value FROM store WHERE key = 'durability'),
	cut = (SELECT value FROM store WHERE key = 'cut'),
	kind = (SELECT value FROM store WHERE key = 'kind')
WHERE session = (SELECT value FROM store WHERE key = 'session');

-- What sessions wrote themselves that have ended: of each, the events 1 to
-- highest of some origins. A child of a cut gets the rows of those that the cut
-- ends, and a file that is made whole those of all ancestors.
CREATE TABLE wrote (
	session TEXT NOT NULL,
	uuid    BLOB NOT NULL CHECK (length(uuid) = 16),
	highest INTEGER NOT NULL,
	PRIMARY KEY (session, uuid)
) WITHOUT ROWID;

-- More keys in store. "siblings": all children of the cut that made the session.
-- "retired": the session has ended without a cut. "moved": the session goes on in
-- the file that is named. The last two, like "unused", hold until the session is
-- written to again.
