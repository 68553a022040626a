-- Times are as in 002_approval.

-- What values requests to agent CLIs have, in the columns that lists filter by: few among many requests, so that a list
-- knows at once which of them it has to look at. latest is the time of the youngest.
CREATE TABLE flight_class (
	id INTEGER PRIMARY KEY,
	agent TEXT NOT NULL,
	cli TEXT NOT NULL,
	status TEXT NOT NULL,
	policy TEXT NOT NULL,
	score INTEGER NOT NULL,
	latest INTEGER NOT NULL,
	UNIQUE (agent, cli, status, policy, score)
) STRICT;

-- One row per request: who asked for what, what was decided, what became of it. Words of a prompt are sealed.
CREATE TABLE flight (
	id TEXT PRIMARY KEY,
	time INTEGER NOT NULL,
	class INTEGER NOT NULL,
	agent TEXT NOT NULL,
	correlation TEXT NOT NULL,
	prompt_hash TEXT NOT NULL,
	session TEXT NOT NULL, -- of the conversation with the CLI
	state TEXT NOT NULL,
	body BLOB NOT NULL -- the whole record, sealed, and with it what the columns say
) STRICT;
CREATE INDEX flight_time ON flight (time, id, class);
CREATE INDEX flight_agent ON flight (agent, time, id);
CREATE INDEX flight_class_time ON flight (class, time, id);
CREATE INDEX flight_hash ON flight (prompt_hash, time, id, class);
CREATE INDEX flight_hash_class ON flight (prompt_hash, class, time, id);
CREATE INDEX flight_correlation ON flight (correlation);
CREATE INDEX flight_open ON flight (time) WHERE state = 'started';

-- Sums over finished requests: by minute, by conversation, by the hash of a prompt's stable prefix.
CREATE TABLE flight_sum (
	kind TEXT NOT NULL,
	key TEXT NOT NULL,
	agent TEXT NOT NULL,
	cli TEXT NOT NULL,
	model TEXT NOT NULL,
	requests INTEGER NOT NULL,
	hits INTEGER NOT NULL,
	input_tokens INTEGER NOT NULL,
	output_tokens INTEGER NOT NULL,
	cache_read INTEGER NOT NULL,
	cache_creation INTEGER NOT NULL,
	cost_micros INTEGER NOT NULL,
	saved_micros INTEGER NOT NULL,
	explicit INTEGER NOT NULL,
	explicit_hits INTEGER NOT NULL,
	first INTEGER NOT NULL,
	latest INTEGER NOT NULL,
	PRIMARY KEY (kind, key, agent, cli, model)
) STRICT, WITHOUT ROWID;
CREATE INDEX flight_sum_age ON flight_sum (latest);
