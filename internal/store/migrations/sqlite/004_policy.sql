-- The policy files that are in force, whatever lies on disk: one row for the gate, one per project.
CREATE TABLE policy_files (
	scope TEXT PRIMARY KEY,
	content BLOB NOT NULL,
	set_by TEXT NOT NULL,
	set_at INTEGER NOT NULL,
	mac BLOB NOT NULL
) STRICT;

-- Digests of projects' files that an approver trusted: they may loosen.
CREATE TABLE policy_trust (
	digest BLOB PRIMARY KEY,
	path TEXT NOT NULL,
	set_by TEXT NOT NULL,
	set_at INTEGER NOT NULL,
	mac BLOB NOT NULL
) STRICT;

-- Calls that were let through. An open one has started and nobody has told its end.
CREATE TABLE open_call (
	id TEXT PRIMARY KEY,
	node TEXT NOT NULL,
	agent TEXT NOT NULL,
	session TEXT NOT NULL,
	path TEXT NOT NULL,
	operation TEXT NOT NULL,
	started INTEGER NOT NULL
) STRICT;
CREATE INDEX open_call_node ON open_call (node);
