// Package gitobj reads what a git repository holds without running git.
//
// Git, run on a tree that an agent can write, executes what the agent put
// there: filters, file system monitors, hooks, included configuration. So the
// gate reads the files itself: objects, loose and packed ([Store]), the index
// ([ReadIndex]), and refs ([Refs]). It is enough to say which files differ from
// the last commit and which commits no remote has, and no more.
//
// Whatever is read may have been made by an agent. Every length is checked
// before it is believed, an object whose content does not hash to its name is
// refused, and a store gives up after a bounded amount of work. What cannot be
// read is an error, never an empty answer: the caller counts it against the
// call. Repositories that name objects by SHA-256, split or sparse indexes and
// refs in reftables are not read.
//
// The package writes nothing and starts nothing. Start reading at [Open].
package gitobj
