-- Trust in a project's file is trust in one text at one path. What was trusted wherever it lay is not carried over: an
-- approver looks at it again.
DROP TABLE policy_trust;
CREATE TABLE policy_trust (
	path TEXT NOT NULL,
	digest BLOB NOT NULL,
	set_by TEXT NOT NULL,
	set_at INTEGER NOT NULL,
	mac BLOB NOT NULL,
	PRIMARY KEY (path, digest)
) STRICT;
