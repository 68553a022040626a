-- Conversations with agent CLIs that can be gone on with. The body is sealed and repeats the columns, so that an edited
-- row is noticed.
CREATE TABLE dispatch_session (
	id TEXT NOT NULL,
	agent TEXT NOT NULL,
	cli TEXT NOT NULL,
	used BIGINT NOT NULL,
	active BIGINT NOT NULL,
	body BYTEA NOT NULL,
	PRIMARY KEY (agent, id)
);
CREATE INDEX dispatch_session_used ON dispatch_session (agent, cli, used);
