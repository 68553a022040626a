// Package restore keeps copies of what calls are about to change, so that a
// person can take it back.
//
// A restore point belongs to a batch: the calls of one session that were let
// through since the last question, for ten minutes at most. The first time a
// call of a batch is about to write or delete a path, what is there is copied
// ([Store.Keep]): files by the hash of their content, directories as trees,
// links as links, and where nothing was, that. Putting a point back
// ([Store.Apply]) brings all of it to where it was when the batch began.
//
// Points lie in the gate's own directory, which no agent writes. They are
// capped: in size each, in size together, in number and in age; the oldest go
// first. What is not kept, because it is too large, cannot be read or cannot be
// told from the words of the call, is said so, before a person answers and in
// the record.
//
// No link is followed, on the way to a file or at its end, neither when copying
// nor when putting back: every directory on the way is opened by itself and
// compared with what was seen there (tree.go). The list of a point is signed,
// because whoever could write one could have the gate write files.
//
// Start reading at [Store.Keep].
package restore
