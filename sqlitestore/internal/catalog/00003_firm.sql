PRAGMA user_version = 3;

-- 0: what the cut wrote may not be durable yet. The next start looks into the files
-- then, and takes the cut back if something of it is missing.
ALTER TABLE cut ADD COLUMN firm INTEGER NOT NULL DEFAULT 1;
