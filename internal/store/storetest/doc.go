// Package storetest is what tests need to run on a real store: databases of both kinds that live as long as a test,
// a contract suite that every database must pass, and a driver that fails, waits and counts on demand.
//
// [Both] runs a test on SQLite and on PostgreSQL; [SQLite] and [Postgres] give the options of a new, empty database,
// for tests that open it several times, as a restart or a second node would. PostgreSQL needs no set-up: the first
// test that asks starts a server of its own from the installed binaries, on a socket in a temporary directory, as an
// unprivileged user when the tests run as root. It ends with the test process, even a killed one. Where PostgreSQL is
// not installed such tests are skipped and say so.
//
// It never touches a server it did not start, and nothing outside tests imports it.
//
// Where to start reading: open.go for the helpers, run.go for the contract, fault.go for the driver.
package storetest
