-- Sessions of hosts that were told to come back, and until when that is good.
CREATE TABLE deferral (
	agent TEXT NOT NULL,
	ref TEXT NOT NULL,
	until BIGINT NOT NULL,
	mac BYTEA NOT NULL,
	PRIMARY KEY (agent, ref)
);
