-- How often declared tools were used, and how that ended: it follows the agent and the workspace.
CREATE TABLE tool_use (
	call TEXT NOT NULL,
	tool TEXT NOT NULL,
	agent TEXT NOT NULL,
	workspace TEXT NOT NULL,
	at INTEGER NOT NULL,
	ended INTEGER NOT NULL DEFAULT 0,
	succeeded INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (call, tool)
) STRICT;
CREATE INDEX tool_use_agent ON tool_use (agent, at);
CREATE INDEX tool_use_workspace ON tool_use (workspace, at);
-- How often in a row an agent was denied a declared tool.
CREATE TABLE tool_denial (
	agent TEXT NOT NULL,
	tool TEXT NOT NULL,
	count INTEGER NOT NULL,
	at INTEGER NOT NULL,
	PRIMARY KEY (agent, tool)
) STRICT;
-- Whoever counts holds this row, so that two nodes do not count past each other.
CREATE TABLE tool_turn (one INTEGER PRIMARY KEY) STRICT;
INSERT INTO tool_turn (one) VALUES (1);
ALTER TABLE open_call ADD COLUMN counted INTEGER NOT NULL DEFAULT 0;
