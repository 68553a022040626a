-- How often declared tools were used, and how that ended: it follows the agent and the workspace.
CREATE TABLE tool_use (
	call TEXT NOT NULL,
	tool TEXT NOT NULL,
	agent TEXT NOT NULL,
	workspace TEXT NOT NULL,
	at BIGINT NOT NULL,
	ended BIGINT NOT NULL DEFAULT 0,
	succeeded BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY (call, tool)
);
CREATE INDEX tool_use_agent ON tool_use (agent, at);
CREATE INDEX tool_use_workspace ON tool_use (workspace, at);
-- How often in a row an agent was denied a declared tool.
CREATE TABLE tool_denial (
	agent TEXT NOT NULL,
	tool TEXT NOT NULL,
	count BIGINT NOT NULL,
	at BIGINT NOT NULL,
	PRIMARY KEY (agent, tool)
);
-- Whoever counts holds this row, so that two nodes do not count past each other.
CREATE TABLE tool_turn (one SMALLINT PRIMARY KEY);
INSERT INTO tool_turn (one) VALUES (1);
ALTER TABLE open_call ADD COLUMN counted BIGINT NOT NULL DEFAULT 0;
