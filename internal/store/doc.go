// Package store keeps the gate's state in one SQL database: SQLite inside the process, or PostgreSQL shared by several
// nodes. The packages that hold state write their SQL as functions on [Tx]; this package gives them transactions that
// are durable when they say so, a clock that cannot be set back, schema migrations, and errors that say what is wrong
// with the database in words the gate can turn into a denial.
//
// Writes are grouped. [Store.Write] queues a function; one goroutine takes everything that is queued, runs each
// function in a savepoint of one transaction, commits once, and only then answers. Nil means durable: there is one
// sync per group and no answer before it. A function that fails takes back its own writes and nobody else's.
//
// A group that only adds rows nobody reads at once ([Store.WriteLight], [Tx.Put]) is made durable in a journal instead,
// where this process has a SQLite file to itself; its rows are in the database before anybody reads (journal.go).
//
// What it never does: answer before the commit, hold a caller for ever (a full queue refuses with [ErrBusy]), retry a
// commit whose fate is unknown, or run a migration backwards. It knows no table but its own and nothing about calls,
// grants or approvals.
//
// Where to start reading: [Store.Write] and the group it joins in write.go; then tx.go for what a function may do;
// migrate.go for the schema; errors.go for how the failures of both databases become the sentinels of this package.
// The contract both databases must meet is the suite in storetest.
package store
