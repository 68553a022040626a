-- What the operations of a batch that is done whole or not at all have changed, sealed, until the batch is over. What is left of an
-- earlier run of the node is taken back.
CREATE TABLE trail (
	node TEXT NOT NULL,
	batch TEXT NOT NULL,
	seq BIGINT NOT NULL,
	content BYTEA NOT NULL,
	PRIMARY KEY (batch, seq)
);
