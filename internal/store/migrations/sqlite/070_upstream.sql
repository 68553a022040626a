-- MCP servers behind the gate, as approvers entered them.
CREATE TABLE upstream (
	name TEXT PRIMARY KEY,
	spec BLOB NOT NULL,
	added INTEGER NOT NULL,
	added_by TEXT NOT NULL,
	mac BLOB NOT NULL
) STRICT;

-- What an upstream says its tools are: as it was pinned, and as it waits for a person.
CREATE TABLE upstream_pin (
	upstream TEXT NOT NULL,
	kind TEXT NOT NULL,
	name TEXT NOT NULL,
	state TEXT NOT NULL,
	definition BLOB NOT NULL,
	reason TEXT NOT NULL,
	seen INTEGER NOT NULL,
	accepted_by TEXT NOT NULL,
	mac BLOB NOT NULL,
	PRIMARY KEY (upstream, kind, name, state)
) STRICT;

-- Credentials for upstreams, sealed, per agent; the agent "" is for all that have none.
CREATE TABLE upstream_credential (
	upstream TEXT NOT NULL,
	agent TEXT NOT NULL,
	sealed BLOB NOT NULL,
	set_at INTEGER NOT NULL,
	set_by TEXT NOT NULL,
	PRIMARY KEY (upstream, agent)
) STRICT;
