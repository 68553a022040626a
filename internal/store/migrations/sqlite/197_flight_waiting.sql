-- Requests to agent CLIs that a person is asked about, by the question they wait for, until it is answered.
CREATE TABLE flight_waiting (
	request TEXT NOT NULL,
	id TEXT NOT NULL,
	PRIMARY KEY (request, id)
) STRICT, WITHOUT ROWID;
