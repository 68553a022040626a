-- Who writes records. A record's position holds the node's number, so that one integer is the whole key.
CREATE TABLE audit_node (
	no BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY CHECK (no > 0 AND no < 8388608),
	name TEXT NOT NULL UNIQUE,
	sequenced BIGINT NOT NULL DEFAULT 0 -- how many of the node's records are in the tree
);

-- The records, each node's in a chain of hashes. pos = node number << 40 | place in the node's chain, from 1.
CREATE TABLE audit_record (
	pos BIGINT PRIMARY KEY,
	time BIGINT NOT NULL, -- microseconds
	kind TEXT NOT NULL,
	call_id TEXT NOT NULL,
	principal TEXT NOT NULL,
	session TEXT NOT NULL,
	surface TEXT NOT NULL,
	operation TEXT NOT NULL,
	level TEXT NOT NULL,
	outcome TEXT NOT NULL,
	correlation TEXT NOT NULL,
	salt BYTEA, -- salt and body are dropped by retention; body_hash = SHA-256(salt || body) stays
	body BYTEA,
	body_hash BYTEA NOT NULL,
	hash BYTEA NOT NULL -- of everything above and of the record before it: the leaf in the tree
);
CREATE INDEX audit_record_call ON audit_record (call_id, pos) WHERE call_id <> '';

-- The order of the log: the records at indexes [first, first + size) are those at positions [pos, pos + size).
CREATE TABLE audit_run (
	first BIGINT PRIMARY KEY,
	size BIGINT NOT NULL,
	pos BIGINT NOT NULL UNIQUE
);

-- Hashes of full subtrees of 2^8, 2^16 … records; the other hashes of the tree follow from these and the records'.
-- latest is the highest time among all records up to the subtree's end.
CREATE TABLE audit_subtree (
	level BIGINT NOT NULL,
	n BIGINT NOT NULL,
	hash BYTEA NOT NULL,
	latest BIGINT NOT NULL,
	PRIMARY KEY (level, n)
);
CREATE INDEX audit_subtree_latest ON audit_subtree (level, latest, n);

-- The tree as sequenced so far. Whoever extends it compares and swaps size and root. latest is the highest time of a
-- record in it, lag the most by which a record's time was behind that when it was sequenced.
CREATE TABLE audit_head (
	one BIGINT PRIMARY KEY CHECK (one = 1),
	origin TEXT NOT NULL,
	size BIGINT NOT NULL,
	root BYTEA NOT NULL,
	latest BIGINT NOT NULL,
	lag BIGINT NOT NULL
);
INSERT INTO audit_head -- the root of an empty tree is the SHA-256 of nothing
VALUES (1, 'gatehouse/log-' || replace(gen_random_uuid()::text, '-', ''), 0, '\xe3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855', 0, 0);

-- What was signed. The primary key is why no size is signed with two roots.
CREATE TABLE audit_checkpoint (
	size BIGINT PRIMARY KEY,
	root BYTEA NOT NULL,
	note BYTEA NOT NULL
);

-- Which records have a value in a column, as bit sets over blocks of indexes, for the list's filters (audit/posting.go).
CREATE TABLE audit_posting (
	tier BIGINT NOT NULL,
	block BIGINT NOT NULL,
	key BIGINT NOT NULL,
	bits BYTEA NOT NULL,
	PRIMARY KEY (tier, block, key)
);

-- Up to which time bodies may be dropped.
CREATE TABLE audit_retention (
	before BIGINT PRIMARY KEY
);

-- The log only grows. These guard against mistakes in our own SQL; a role without UPDATE and DELETE (docs/postgresql.md)
-- guards against more, and checkpoints kept elsewhere against whoever owns the database.
CREATE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'audit: % on % is refused: the log only grows', TG_OP, TG_TABLE_NAME;
END $$;

CREATE FUNCTION audit_record_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.body IS NULL AND NEW.salt IS NULL AND OLD.time < (SELECT max(before) FROM audit_retention)
		AND (NEW.pos, NEW.time, NEW.kind, NEW.call_id, NEW.principal, NEW.session, NEW.surface, NEW.operation,
			NEW.level, NEW.outcome, NEW.correlation, NEW.body_hash, NEW.hash)
		= (OLD.pos, OLD.time, OLD.kind, OLD.call_id, OLD.principal, OLD.session, OLD.surface, OLD.operation,
			OLD.level, OLD.outcome, OLD.correlation, OLD.body_hash, OLD.hash)
	THEN
		RETURN NEW;
	END IF;
	RAISE EXCEPTION 'audit: records do not change';
END $$;

CREATE FUNCTION audit_node_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.no = OLD.no AND NEW.name = OLD.name AND NEW.sequenced >= OLD.sequenced THEN
		RETURN NEW;
	END IF;
	RAISE EXCEPTION 'audit: nodes only advance';
END $$;

CREATE FUNCTION audit_run_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.first = OLD.first AND NEW.pos = OLD.pos AND NEW.size >= OLD.size THEN
		RETURN NEW;
	END IF;
	RAISE EXCEPTION 'audit: the order does not change';
END $$;

CREATE FUNCTION audit_head_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.origin = OLD.origin AND (NEW.size > OLD.size OR (NEW.size = OLD.size AND NEW.root = OLD.root)) THEN
		RETURN NEW;
	END IF;
	RAISE EXCEPTION 'audit: the tree only grows';
END $$;

CREATE TRIGGER audit_record_update BEFORE UPDATE ON audit_record FOR EACH ROW EXECUTE FUNCTION audit_record_update();
CREATE TRIGGER audit_node_update BEFORE UPDATE ON audit_node FOR EACH ROW EXECUTE FUNCTION audit_node_update();
CREATE TRIGGER audit_run_update BEFORE UPDATE ON audit_run FOR EACH ROW EXECUTE FUNCTION audit_run_update();
CREATE TRIGGER audit_head_update BEFORE UPDATE ON audit_head FOR EACH ROW EXECUTE FUNCTION audit_head_update();
CREATE TRIGGER audit_subtree_update BEFORE UPDATE ON audit_subtree FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_checkpoint_update BEFORE UPDATE ON audit_checkpoint FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_retention_update BEFORE UPDATE ON audit_retention FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();

CREATE TRIGGER audit_record_delete BEFORE DELETE OR TRUNCATE ON audit_record FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_node_delete BEFORE DELETE OR TRUNCATE ON audit_node FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_run_delete BEFORE DELETE OR TRUNCATE ON audit_run FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_subtree_delete BEFORE DELETE OR TRUNCATE ON audit_subtree FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_head_delete BEFORE DELETE OR TRUNCATE ON audit_head FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_checkpoint_delete BEFORE DELETE OR TRUNCATE ON audit_checkpoint FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_retention_delete BEFORE DELETE OR TRUNCATE ON audit_retention FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();
