// Package dispatch hands whole requests to agent CLIs: who asks and what goes
// in, an answer, or the job that will have it, comes out.
//
// The way of a request is [Service.Do], readable top to bottom: it is read, a
// launch is planned, the gate decides (a call of kind dispatch, whose base level
// is its score), the decision is recorded, and only then is anything looked up
// for re-use, written or started. A request that is denied has started nothing,
// made no file and no session, whether it wanted to wait or not. `legacy` is no
// way around: it changes flags.
//
// Every tool call inside a run is decided by the same gate; the package hands
// the questions on ([Options.Ask]) and answers none itself.
//
// Sub-packages: provider knows the CLIs, job supervises processes, flight keeps
// what happened. This package owns the conversations that can be gone on with,
// the state of a repository as part of the key that finds an equal request, the
// review loop, and the tools that agents call.
//
// It never reads the environment of a caller, never runs git, and never starts
// a program that was not resolved to one file with a recorded hash.
package dispatch
