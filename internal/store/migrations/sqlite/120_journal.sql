-- Up to which entry the journal is in the database (store/journal.go).
CREATE TABLE store_journal (
	one INTEGER PRIMARY KEY CHECK (one = 1),
	settled INTEGER NOT NULL
) STRICT;
INSERT INTO store_journal VALUES (1, 0);
