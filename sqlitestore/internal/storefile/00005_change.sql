PRAGMA user_version = 5;

-- What records changed in the live rows and their events do not tell, so that
-- the rows can be made as they were at any time. A row comes behind the last
-- event of its record, or the last one before a record without events (number 0
-- of an origin: before its first). Several behind one event are in the order of
-- part. It is a part of the history: its rows are never changed, and go where
-- their event goes.
CREATE TABLE change (
	event INTEGER NOT NULL, -- packed as event.id
	part  INTEGER NOT NULL,
	first INTEGER NOT NULL, -- the first event of the record, packed; behind event if it has none
	base  INTEGER NOT NULL, -- 1: rows are all live rows at that time, and not changes
	rows  TEXT NOT NULL,    -- JSON
	PRIMARY KEY (event, part)
) WITHOUT ROWID;

-- The key "based" in store says that changes are told from some time on. A file
-- that does not have it yet gets its base with the next record.
