-- What the effect of an open call is and must show before it starts, and whether it has.
ALTER TABLE open_call ADD COLUMN effect TEXT NOT NULL DEFAULT '';
ALTER TABLE open_call ADD COLUMN requires TEXT NOT NULL DEFAULT '[]';
ALTER TABLE open_call ADD COLUMN shown INTEGER NOT NULL DEFAULT 0;
