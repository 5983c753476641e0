PRAGMA user_version = 5;

-- Changes of the live rows that do not follow from events, so that the rows can
-- be restored as they were at any time. A change comes after the last event of
-- its record. If the record has no events, the change comes after the last event
-- before the record; number 0 of an origin stands for the place before its first
-- event. Several changes after one event are in the order of part. The table is a
-- part of the history: its rows are never changed, and are copied with their
-- event.
CREATE TABLE change (
	event INTEGER NOT NULL, -- packed as event.id
	part  INTEGER NOT NULL,
	first INTEGER NOT NULL, -- the first event of the record, packed; if it has none, after event
	base  INTEGER NOT NULL, -- 1: rows has all live rows at that time, not changes
	rows  TEXT NOT NULL,    -- JSON
	PRIMARY KEY (event, part)
) WITHOUT ROWID;

-- The key "based" in store says that changes are recorded. A file without this key
-- gets all of its live rows with the next record.
