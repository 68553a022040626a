-- Which sub-agent used a declared tool, and what of an agent's calls was set aside for one.
ALTER TABLE tool_use ADD COLUMN path TEXT NOT NULL DEFAULT '';
CREATE TABLE agent_share (
	id TEXT PRIMARY KEY,
	agent TEXT NOT NULL,
	path TEXT NOT NULL,
	calls BIGINT NOT NULL,
	given BIGINT NOT NULL,
	UNIQUE (agent, path)
);
