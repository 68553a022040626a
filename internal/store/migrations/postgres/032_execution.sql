-- Signatures and times are as in 002_approval.

-- A run of an agent towards a goal. What was said in it is sealed.
CREATE TABLE execution (
	id TEXT PRIMARY KEY,
	agent TEXT NOT NULL,
	session TEXT NOT NULL,
	path TEXT NOT NULL,
	workspace TEXT NOT NULL,
	element TEXT NOT NULL,
	state TEXT NOT NULL,
	pause TEXT NOT NULL,
	handoff TEXT NOT NULL,
	depth BIGINT NOT NULL,
	steps BIGINT NOT NULL,
	free BIGINT NOT NULL,
	since BIGINT NOT NULL,
	started BIGINT NOT NULL,
	ended BIGINT NOT NULL,
	ended_by TEXT NOT NULL,
	sealed BYTEA NOT NULL,
	mac BYTEA NOT NULL
);
CREATE INDEX execution_agent ON execution (agent, started);
CREATE INDEX execution_live ON execution (agent) WHERE state IN ('running', 'paused', 'handed');
