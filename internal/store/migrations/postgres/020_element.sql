-- The active elements of an agent in a workspace, as one list; workspace '' is every workspace of the agent.
CREATE TABLE active_element (
	agent TEXT NOT NULL,
	workspace TEXT NOT NULL,
	content BYTEA NOT NULL,
	set_by TEXT NOT NULL,
	set_at BIGINT NOT NULL,
	mac BYTEA NOT NULL,
	PRIMARY KEY (agent, workspace)
);

-- A signature over all rows above, so that one which was deleted is missed. Empty until there was one.
ALTER TABLE switches ADD COLUMN elements BYTEA NOT NULL DEFAULT '';
