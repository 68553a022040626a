-- Sessions of hosts that were told to come back, and until when that is good.
CREATE TABLE deferral (
	agent TEXT NOT NULL,
	ref TEXT NOT NULL,
	until INTEGER NOT NULL,
	mac BLOB NOT NULL,
	PRIMARY KEY (agent, ref)
) STRICT;
