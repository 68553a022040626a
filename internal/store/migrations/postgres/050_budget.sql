-- What approvals of plans cover, by the count. Lines hold how much of each need there is, was drawn and was handed on;
-- the version moves with every change, so that of two who change it one fails.
CREATE TABLE approval_budget (
	id TEXT PRIMARY KEY,
	agent TEXT NOT NULL,
	session TEXT NOT NULL,
	path TEXT NOT NULL,
	parent TEXT NOT NULL,
	call_id TEXT NOT NULL,
	votes TEXT NOT NULL,
	lines TEXT NOT NULL,
	given_by TEXT NOT NULL,
	channel TEXT NOT NULL,
	given BIGINT NOT NULL,
	expires BIGINT NOT NULL,
	state TEXT NOT NULL,
	version BIGINT NOT NULL,
	mac BYTEA NOT NULL
);
CREATE INDEX approval_budget_call ON approval_budget (call_id);
CREATE INDEX approval_budget_parent ON approval_budget (parent) WHERE parent <> '';
CREATE INDEX approval_budget_session ON approval_budget (session) WHERE state = 'good';
