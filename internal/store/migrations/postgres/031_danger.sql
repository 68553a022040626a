-- Signatures and times are as in 002_approval.

-- A block has a name of its own, so that a release is for this block and no other, and the workspace it came about in.
-- A row from before has neither and blocks as a corrupt one does, until a person releases it.
ALTER TABLE danger_block ADD COLUMN id TEXT NOT NULL DEFAULT '';
ALTER TABLE danger_block ADD COLUMN workspace TEXT NOT NULL DEFAULT '';

-- The agents that a session's process was started under, the nearest first: a block on one of them reaches it.
ALTER TABLE agent_session ADD COLUMN lineage TEXT NOT NULL DEFAULT '';
CREATE INDEX agent_session_pid ON agent_session (pid) WHERE pid > 0;

-- What the gate started, or lets run, on behalf of an agent.
CREATE TABLE gate_process (
	id TEXT PRIMARY KEY,
	agent TEXT NOT NULL,
	session TEXT NOT NULL,
	path TEXT NOT NULL,
	what TEXT NOT NULL,
	pid BIGINT NOT NULL,
	start BIGINT NOT NULL,
	uid BIGINT NOT NULL,
	boot TEXT NOT NULL,
	machine TEXT NOT NULL,
	started BIGINT NOT NULL,
	mac BYTEA NOT NULL
);
CREATE INDEX gate_process_machine ON gate_process (machine);

-- Violations of an agent since a time. They outlive sessions and restarts.
CREATE TABLE danger_strikes (
	agent TEXT PRIMARY KEY,
	strikes BIGINT NOT NULL,
	since BIGINT NOT NULL,
	last TEXT NOT NULL,
	mac BYTEA NOT NULL
);
