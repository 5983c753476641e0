PRAGMA user_version = 3;

-- 0: the cut may not be durable yet. The next start then checks the files, and undoes
-- the cut if a part of it is missing.
ALTER TABLE cut ADD COLUMN firm INTEGER NOT NULL DEFAULT 1;
