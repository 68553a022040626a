-- What agents have taken in: credentials, or content that nobody vouches for. It follows the agent and the workspace.
CREATE TABLE taint (
	agent TEXT NOT NULL,
	workspace TEXT NOT NULL,
	kind TEXT NOT NULL,
	call TEXT NOT NULL,
	since BIGINT NOT NULL,
	until BIGINT NOT NULL,
	PRIMARY KEY (agent, workspace, kind)
);
CREATE INDEX taint_workspace ON taint (workspace);
