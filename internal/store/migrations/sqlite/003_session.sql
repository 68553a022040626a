-- Signatures and times are as in 002_approval.

CREATE TABLE agent (
	name TEXT PRIMARY KEY,
	hash BLOB NOT NULL UNIQUE,
	added INTEGER NOT NULL,
	added_by TEXT NOT NULL,
	removed INTEGER NOT NULL,
	removed_by TEXT NOT NULL,
	mac BLOB NOT NULL
) STRICT;

-- A session belongs to a process (pid, start, uid, boot, machine) or to an agent's token, never to both.
CREATE TABLE agent_session (
	id TEXT PRIMARY KEY,
	agent TEXT NOT NULL,
	ref TEXT NOT NULL,
	surface TEXT NOT NULL,
	workspace TEXT NOT NULL,
	pid INTEGER NOT NULL,
	start INTEGER NOT NULL,
	uid INTEGER NOT NULL,
	boot TEXT NOT NULL,
	machine TEXT NOT NULL,
	token TEXT NOT NULL,
	attendance TEXT NOT NULL,
	mode TEXT NOT NULL,
	opened INTEGER NOT NULL,
	seen INTEGER NOT NULL,
	ended INTEGER NOT NULL,
	ended_by TEXT NOT NULL,
	mac BLOB NOT NULL
) STRICT;
-- A host's own session id names at most one live session of an agent.
CREATE UNIQUE INDEX agent_session_ref ON agent_session (agent, ref) WHERE ended = 0 AND ref <> '';
CREATE INDEX agent_session_opened ON agent_session (opened, id);

-- The one row every decision reads and everything that must stop decisions changes: it holds the kill switch and a
-- signature over the list of blocked agents, so that a block which was deleted is missed.
CREATE TABLE switches (
	one INTEGER PRIMARY KEY CHECK (one = 1),
	killed INTEGER NOT NULL,
	reason TEXT NOT NULL,
	set_by TEXT NOT NULL,
	set_at INTEGER NOT NULL,
	blocks BLOB NOT NULL,
	version INTEGER NOT NULL,
	mac BLOB NOT NULL
) STRICT;

CREATE TABLE danger_block (
	agent TEXT PRIMARY KEY,
	reason TEXT NOT NULL,
	set_by TEXT NOT NULL,
	set_at INTEGER NOT NULL,
	mac BLOB NOT NULL
) STRICT;

CREATE TABLE policy_head (
	scope TEXT PRIMARY KEY,
	hash BLOB NOT NULL,
	epoch INTEGER NOT NULL,
	set_by TEXT NOT NULL,
	set_at INTEGER NOT NULL,
	mac BLOB NOT NULL
) STRICT;
