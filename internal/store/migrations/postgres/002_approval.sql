-- Every row that says who may do what carries a signature (mac) over its columns; see package keyring. Times are
-- microseconds since 1970, 0 for never.

-- The keys this database belongs to.
CREATE TABLE keyring (
	one SMALLINT PRIMARY KEY CHECK (one = 1),
	name TEXT NOT NULL,
	fingerprint TEXT NOT NULL,
	bound BIGINT NOT NULL,
	mac BYTEA NOT NULL
);

-- What happens once and never again, such as the first approver's enrolment. Its rows also serve as locks.
CREATE TABLE approval_mark (
	name TEXT PRIMARY KEY,
	made BIGINT NOT NULL,
	mac BYTEA NOT NULL
);

CREATE TABLE approver (
	name TEXT PRIMARY KEY,
	hash BYTEA NOT NULL UNIQUE,
	added BIGINT NOT NULL,
	added_by TEXT NOT NULL,
	info TEXT NOT NULL,
	removed BIGINT NOT NULL,
	removed_by TEXT NOT NULL,
	totp BYTEA NOT NULL,
	totp_confirmed BOOLEAN NOT NULL,
	totp_step BIGINT NOT NULL,
	tries BIGINT NOT NULL,
	tries_since BIGINT NOT NULL,
	mac BYTEA NOT NULL
);

CREATE TABLE sign_in_link (
	hash BYTEA PRIMARY KEY,
	approver TEXT NOT NULL,
	made BIGINT NOT NULL,
	expires BIGINT NOT NULL,
	used BIGINT NOT NULL,
	mac BYTEA NOT NULL
);
CREATE INDEX sign_in_link_expires ON sign_in_link (expires);

CREATE TABLE console_session (
	id TEXT PRIMARY KEY,
	hash BYTEA NOT NULL UNIQUE,
	approver TEXT NOT NULL,
	label TEXT NOT NULL,
	opened BIGINT NOT NULL,
	seen BIGINT NOT NULL,
	ended BIGINT NOT NULL,
	mac BYTEA NOT NULL
);
CREATE INDEX console_session_approver ON console_session (approver, ended);

CREATE TABLE approval_request (
	id TEXT PRIMARY KEY,
	call_id TEXT NOT NULL,
	digest BYTEA NOT NULL,
	world BYTEA NOT NULL,
	policy BYTEA NOT NULL,
	agent TEXT NOT NULL,
	session TEXT NOT NULL,
	path TEXT NOT NULL,
	surface TEXT NOT NULL,
	kind TEXT NOT NULL,
	operation TEXT NOT NULL,
	element_type TEXT NOT NULL,
	level TEXT NOT NULL,
	pinned BOOLEAN NOT NULL,
	takes_code BOOLEAN NOT NULL,
	votes TEXT NOT NULL,
	offers TEXT NOT NULL,
	sealed BYTEA NOT NULL,
	state TEXT NOT NULL,
	filed BIGINT NOT NULL,
	expires BIGINT NOT NULL,
	answered BIGINT NOT NULL,
	answered_by TEXT NOT NULL,
	channel TEXT NOT NULL,
	words TEXT NOT NULL,
	edited BYTEA NOT NULL,
	edit_of TEXT NOT NULL,
	edited_to TEXT NOT NULL,
	mac BYTEA NOT NULL
);
-- Identical asks join, on however many nodes they come in.
CREATE UNIQUE INDEX approval_request_pending ON approval_request (agent, session, path, digest, world, policy)
	WHERE state = 'pending';
CREATE INDEX approval_request_due ON approval_request (expires) WHERE state = 'pending';
CREATE INDEX approval_request_kept ON approval_request (answered) WHERE state = 'approved' AND edit_of <> '';
CREATE INDEX approval_request_agent ON approval_request (agent, filed);
CREATE INDEX approval_request_filed ON approval_request (filed, id);
CREATE INDEX approval_request_digest ON approval_request (digest, filed);

-- One row per agent that has asked; whoever files for it holds the row, so that ceilings hold across nodes.
CREATE TABLE approval_asker (
	agent TEXT PRIMARY KEY,
	asked BIGINT NOT NULL
);

CREATE TABLE approval_grant (
	id TEXT PRIMARY KEY,
	use TEXT NOT NULL,
	agent TEXT NOT NULL,
	session TEXT NOT NULL,
	path TEXT NOT NULL,
	votes TEXT NOT NULL,
	digest BYTEA NOT NULL,
	world BYTEA NOT NULL,
	policy BYTEA NOT NULL,
	operation TEXT NOT NULL,
	element_type TEXT NOT NULL,
	needs TEXT NOT NULL,
	words TEXT NOT NULL,
	given_by TEXT NOT NULL,
	channel TEXT NOT NULL,
	factor BOOLEAN NOT NULL,
	request TEXT NOT NULL,
	given BIGINT NOT NULL,
	expires BIGINT NOT NULL,
	uses BIGINT NOT NULL,
	state TEXT NOT NULL,
	ended BIGINT NOT NULL,
	ended_by TEXT NOT NULL,
	mac BYTEA NOT NULL
);
CREATE INDEX approval_grant_good ON approval_grant (session, agent) WHERE state = 'good';
CREATE INDEX approval_grant_live ON approval_grant (expires) WHERE state = 'good';
CREATE INDEX approval_grant_given ON approval_grant (given, id);
