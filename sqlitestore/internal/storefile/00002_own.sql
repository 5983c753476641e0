PRAGMA user_version = 2;

-- The origins under which this session itself has written. (A file of version 1
-- does not record them, so all origins with events are inserted. Those of its
-- ancestors do no harm.)
CREATE TABLE own (
	uuid BLOB PRIMARY KEY CHECK (length(uuid) = 16)
) WITHOUT ROWID;
INSERT INTO own (uuid) SELECT uuid FROM origin o WHERE EXISTS (SELECT 1 FROM event WHERE id > o.no << 40 AND id < (o.no + 1) << 40);

-- The key "incomplete" in store says that the file has only the events that its
-- session wrote itself; the earlier history is still in the files of its
-- ancestors. The key "pruned" is a time: older events may have been pruned.
