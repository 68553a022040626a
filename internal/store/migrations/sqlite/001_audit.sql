-- The highest time shown by Tx.Now, saved with every commit (store/clock.go).
CREATE TABLE store_clock (
	one INTEGER PRIMARY KEY CHECK (one = 1),
	micros INTEGER NOT NULL
) STRICT;
INSERT INTO store_clock VALUES (1, 0);

-- Who writes records. A record's position holds the node's number, so that one integer is the whole key.
CREATE TABLE audit_node (
	no INTEGER PRIMARY KEY CHECK (no > 0 AND no < 8388608),
	name TEXT NOT NULL UNIQUE,
	sequenced INTEGER NOT NULL DEFAULT 0 -- how many of the node's records are in the tree
) STRICT;

-- The records, each node's in a chain of hashes. pos = node number << 40 | place in the node's chain, from 1.
CREATE TABLE audit_record (
	pos INTEGER PRIMARY KEY,
	time INTEGER NOT NULL, -- microseconds
	kind TEXT NOT NULL,
	call_id TEXT NOT NULL,
	principal TEXT NOT NULL,
	session TEXT NOT NULL,
	surface TEXT NOT NULL,
	operation TEXT NOT NULL,
	level TEXT NOT NULL,
	outcome TEXT NOT NULL,
	correlation TEXT NOT NULL,
	salt BLOB, -- salt and body are dropped by retention; body_hash = SHA-256(salt || body) stays
	body BLOB,
	body_hash BLOB NOT NULL,
	hash BLOB NOT NULL -- of everything above and of the record before it: the leaf in the tree
) STRICT;
CREATE INDEX audit_record_call ON audit_record (call_id, pos) WHERE call_id <> '';

-- The order of the log: the records at indexes [first, first + size) are those at positions [pos, pos + size).
CREATE TABLE audit_run (
	first INTEGER PRIMARY KEY,
	size INTEGER NOT NULL,
	pos INTEGER NOT NULL UNIQUE
) STRICT;

-- Hashes of full subtrees of 2^8, 2^16 … records; the other hashes of the tree follow from these and the records'.
-- latest is the highest time among all records up to the subtree's end.
CREATE TABLE audit_subtree (
	level INTEGER NOT NULL,
	n INTEGER NOT NULL,
	hash BLOB NOT NULL,
	latest INTEGER NOT NULL,
	PRIMARY KEY (level, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_subtree_latest ON audit_subtree (level, latest, n);

-- The tree as sequenced so far. Whoever extends it compares and swaps size and root. latest is the highest time of a
-- record in it, lag the most by which a record's time was behind that when it was sequenced.
CREATE TABLE audit_head (
	one INTEGER PRIMARY KEY CHECK (one = 1),
	origin TEXT NOT NULL,
	size INTEGER NOT NULL,
	root BLOB NOT NULL,
	latest INTEGER NOT NULL,
	lag INTEGER NOT NULL
) STRICT;
INSERT INTO audit_head -- the root of an empty tree is the SHA-256 of nothing
VALUES (1, 'gatehouse/log-' || lower(hex(randomblob(16))), 0, x'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855', 0, 0);

-- What was signed. The primary key is why no size is signed with two roots.
CREATE TABLE audit_checkpoint (
	size INTEGER PRIMARY KEY,
	root BLOB NOT NULL,
	note BLOB NOT NULL
) STRICT;

-- Which records have a value in a column, as bit sets over blocks of indexes, for the list's filters (audit/posting.go).
CREATE TABLE audit_posting (
	tier INTEGER NOT NULL,
	block INTEGER NOT NULL,
	key INTEGER NOT NULL,
	bits BLOB NOT NULL,
	PRIMARY KEY (tier, block, key)
) STRICT, WITHOUT ROWID;

-- Up to which time bodies may be dropped.
CREATE TABLE audit_retention (
	before INTEGER PRIMARY KEY
) STRICT;

-- The log only grows. These guard against mistakes in our own SQL; against whoever owns the file, only checkpoints
-- kept elsewhere do.
CREATE TRIGGER audit_record_update BEFORE UPDATE ON audit_record
WHEN NEW.body IS NOT NULL OR NEW.salt IS NOT NULL
	OR OLD.time >= coalesce((SELECT max(before) FROM audit_retention), -9223372036854775808)
	OR NEW.pos <> OLD.pos OR NEW.time <> OLD.time OR NEW.kind <> OLD.kind OR NEW.call_id <> OLD.call_id
	OR NEW.principal <> OLD.principal OR NEW.session <> OLD.session OR NEW.surface <> OLD.surface
	OR NEW.operation <> OLD.operation OR NEW.level <> OLD.level OR NEW.outcome <> OLD.outcome
	OR NEW.correlation <> OLD.correlation OR NEW.body_hash <> OLD.body_hash OR NEW.hash <> OLD.hash
BEGIN SELECT RAISE(ABORT, 'audit: records do not change'); END;
CREATE TRIGGER audit_record_delete BEFORE DELETE ON audit_record
BEGIN SELECT RAISE(ABORT, 'audit: records are not deleted'); END;

CREATE TRIGGER audit_node_update BEFORE UPDATE ON audit_node
WHEN NEW.no <> OLD.no OR NEW.name <> OLD.name OR NEW.sequenced < OLD.sequenced
BEGIN SELECT RAISE(ABORT, 'audit: nodes only advance'); END;
CREATE TRIGGER audit_node_delete BEFORE DELETE ON audit_node
BEGIN SELECT RAISE(ABORT, 'audit: nodes are not deleted'); END;

CREATE TRIGGER audit_run_update BEFORE UPDATE ON audit_run
WHEN NEW.first <> OLD.first OR NEW.pos <> OLD.pos OR NEW.size < OLD.size
BEGIN SELECT RAISE(ABORT, 'audit: the order does not change'); END;
CREATE TRIGGER audit_run_delete BEFORE DELETE ON audit_run
BEGIN SELECT RAISE(ABORT, 'audit: the order does not change'); END;

CREATE TRIGGER audit_subtree_update BEFORE UPDATE ON audit_subtree
BEGIN SELECT RAISE(ABORT, 'audit: hashes do not change'); END;
CREATE TRIGGER audit_subtree_delete BEFORE DELETE ON audit_subtree
BEGIN SELECT RAISE(ABORT, 'audit: hashes do not change'); END;

CREATE TRIGGER audit_head_update BEFORE UPDATE ON audit_head
WHEN NEW.origin <> OLD.origin OR NEW.size < OLD.size OR (NEW.size = OLD.size AND NEW.root <> OLD.root)
BEGIN SELECT RAISE(ABORT, 'audit: the tree only grows'); END;
CREATE TRIGGER audit_head_delete BEFORE DELETE ON audit_head
BEGIN SELECT RAISE(ABORT, 'audit: the tree only grows'); END;

CREATE TRIGGER audit_checkpoint_update BEFORE UPDATE ON audit_checkpoint
BEGIN SELECT RAISE(ABORT, 'audit: checkpoints do not change'); END;
CREATE TRIGGER audit_checkpoint_delete BEFORE DELETE ON audit_checkpoint
BEGIN SELECT RAISE(ABORT, 'audit: checkpoints do not change'); END;

CREATE TRIGGER audit_retention_update BEFORE UPDATE ON audit_retention
BEGIN SELECT RAISE(ABORT, 'audit: retention is added to'); END;
CREATE TRIGGER audit_retention_delete BEFORE DELETE ON audit_retention
BEGIN SELECT RAISE(ABORT, 'audit: retention is added to'); END;
