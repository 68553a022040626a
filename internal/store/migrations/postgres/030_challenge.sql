-- Signatures and times are as in 002_approval.

-- A challenge is a question that a code answers. The code itself is nowhere: hash is keyed, and the gate makes the code
-- anew from its key to show it.
CREATE TABLE challenge (
	id TEXT PRIMARY KEY,
	kind TEXT NOT NULL,
	subject TEXT NOT NULL,
	agent TEXT NOT NULL,
	session TEXT NOT NULL,
	path TEXT NOT NULL,
	words TEXT NOT NULL,
	detail BYTEA NOT NULL,
	hash BYTEA NOT NULL,
	state TEXT NOT NULL,
	tries BIGINT NOT NULL,
	shown TEXT NOT NULL,
	issued BIGINT NOT NULL,
	expires BIGINT NOT NULL,
	ended BIGINT NOT NULL,
	ended_by TEXT NOT NULL,
	channel TEXT NOT NULL,
	mac BYTEA NOT NULL
);
CREATE INDEX challenge_subject ON challenge (kind, subject, state);
CREATE INDEX challenge_agent ON challenge (agent, issued);
CREATE INDEX challenge_issued ON challenge (issued, id);

-- Wrong codes, by agent and (with an empty name) in all. They outlive sessions and restarts.
CREATE TABLE challenge_tries (
	who TEXT PRIMARY KEY,
	wrong BIGINT NOT NULL,
	since BIGINT NOT NULL,
	mac BYTEA NOT NULL
);
