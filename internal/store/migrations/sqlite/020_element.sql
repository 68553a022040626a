-- The active elements of an agent in a workspace, as one list; workspace '' is every workspace of the agent.
CREATE TABLE active_element (
	agent TEXT NOT NULL,
	workspace TEXT NOT NULL,
	content BLOB NOT NULL,
	set_by TEXT NOT NULL,
	set_at INTEGER NOT NULL,
	mac BLOB NOT NULL,
	PRIMARY KEY (agent, workspace)
) STRICT;

-- A signature over all rows above, so that one which was deleted is missed. Empty until there was one.
ALTER TABLE switches ADD COLUMN elements BLOB NOT NULL DEFAULT x'';
