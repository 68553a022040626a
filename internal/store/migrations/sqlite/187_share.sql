-- Which sub-agent used a declared tool, and what of an agent's calls was set aside for one.
ALTER TABLE tool_use ADD COLUMN path TEXT NOT NULL DEFAULT '';
CREATE TABLE agent_share (
	id TEXT PRIMARY KEY,
	agent TEXT NOT NULL,
	path TEXT NOT NULL,
	calls INTEGER NOT NULL,
	given INTEGER NOT NULL,
	UNIQUE (agent, path)
) STRICT;
