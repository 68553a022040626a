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
	detail BLOB NOT NULL,
	hash BLOB NOT NULL,
	state TEXT NOT NULL,
	tries INTEGER NOT NULL,
	shown TEXT NOT NULL,
	issued INTEGER NOT NULL,
	expires INTEGER NOT NULL,
	ended INTEGER NOT NULL,
	ended_by TEXT NOT NULL,
	channel TEXT NOT NULL,
	mac BLOB NOT NULL
) STRICT;
CREATE INDEX challenge_subject ON challenge (kind, subject, state);
CREATE INDEX challenge_agent ON challenge (agent, issued);
CREATE INDEX challenge_issued ON challenge (issued, id);

-- Wrong codes, by agent and (with an empty name) in all. They outlive sessions and restarts.
CREATE TABLE challenge_tries (
	who TEXT PRIMARY KEY,
	wrong INTEGER NOT NULL,
	since INTEGER NOT NULL,
	mac BLOB NOT NULL
) STRICT;
