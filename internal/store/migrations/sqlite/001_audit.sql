-- The highest time shown by Tx.Now, saved with every commit (clock.go).
CREATE TABLE store_clock (
	one INTEGER PRIMARY KEY CHECK (one = 1),
	micros INTEGER NOT NULL
) STRICT;
INSERT INTO store_clock VALUES (1, 0);
