PRAGMA user_version = 2;

-- The origins under which this session itself has written. (In a file of the
-- version before these are not known. Origins of its ancestors among them do no
-- harm.)
CREATE TABLE own (
	uuid BLOB PRIMARY KEY CHECK (length(uuid) = 16)
) WITHOUT ROWID;
INSERT INTO own (uuid) SELECT uuid FROM origin o WHERE EXISTS (SELECT 1 FROM event WHERE id > o.no << 40 AND id < (o.no + 1) << 40);

-- The key "incomplete" in store says that the file has only what its session
-- wrote itself, and the history before that is still in the files of its
-- ancestors. The key "pruned" is a time: what is older may have been pruned.
