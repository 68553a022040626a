-- Signatures and times are as in 002_approval.

-- Runs of agent CLIs. What was started and what came out are sealed; a prompt is not kept at all. The process is the
-- supervisor of the run's tree.
CREATE TABLE job (
	id TEXT PRIMARY KEY,
	cli TEXT NOT NULL,
	correlation TEXT NOT NULL,
	request_key TEXT NOT NULL,
	approval TEXT NOT NULL,
	agent TEXT NOT NULL,
	session TEXT NOT NULL,
	path TEXT NOT NULL,
	state TEXT NOT NULL,
	exit_code INTEGER NOT NULL,
	error TEXT NOT NULL,
	category TEXT NOT NULL,
	retries INTEGER NOT NULL,
	node TEXT NOT NULL,
	run TEXT NOT NULL,
	pid INTEGER NOT NULL,
	pid_start INTEGER NOT NULL,
	uid INTEGER NOT NULL,
	boot TEXT NOT NULL,
	machine TEXT NOT NULL,
	asked INTEGER NOT NULL,
	started INTEGER NOT NULL,
	ended INTEGER NOT NULL,
	expires INTEGER NOT NULL,
	stdout INTEGER NOT NULL,
	stderr INTEGER NOT NULL,
	confined INTEGER NOT NULL,
	cancel INTEGER NOT NULL,
	sealed BLOB NOT NULL,
	result BLOB NOT NULL,
	mac BLOB NOT NULL
) STRICT;
CREATE INDEX job_agent ON job (agent, asked, id);
CREATE INDEX job_asked ON job (asked, id);
CREATE INDEX job_correlation ON job (correlation);
CREATE INDEX job_key ON job (request_key, asked) WHERE request_key <> '';
CREATE INDEX job_live ON job (run) WHERE state IN ('queued', 'running');
CREATE INDEX job_expires ON job (expires) WHERE expires > 0;

-- What happened to a job, step by step.
CREATE TABLE job_event (
	job TEXT NOT NULL,
	seq INTEGER NOT NULL,
	time INTEGER NOT NULL,
	phase TEXT NOT NULL,
	kind TEXT NOT NULL,
	words TEXT NOT NULL,
	PRIMARY KEY (job, seq)
) STRICT, WITHOUT ROWID;

-- Which runs of the gate answer for their jobs, and until when.
CREATE TABLE job_lease (
	run TEXT PRIMARY KEY,
	node TEXT NOT NULL,
	machine TEXT NOT NULL,
	until INTEGER NOT NULL
) STRICT;
