-- Trust in a project's file is trust in one text at one path. What was trusted wherever it lay is not carried over: an
-- approver looks at it again.
DROP TABLE policy_trust;
CREATE TABLE policy_trust (
	path TEXT NOT NULL,
	digest BYTEA NOT NULL,
	set_by TEXT NOT NULL,
	set_at BIGINT NOT NULL,
	mac BYTEA NOT NULL,
	PRIMARY KEY (path, digest)
);
