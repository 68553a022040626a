// Package audit is the gate's record: a log that only grows, in which anyone with the public key and an old checkpoint
// can prove that nothing was changed, removed, inserted or reordered since.
//
// A record is written in the transaction of the decision it belongs to ([Append]), so that neither exists without the
// other. It joins the hash chain of the node that wrote it, without a number: several nodes write at once and none
// waits for another. The [Sequencer] then gives records their indexes, builds the Merkle tree over their hashes
// (golang.org/x/mod/sumdb/tlog), and signs checkpoints of it (sumdb/note), which also go to [Sink]s that the gate
// cannot rewrite. Whoever extends the tree compares and swaps its head, so nodes never fork it.
//
// [Verify] recomputes all of it from the tables and [VerifyExport] from an export alone; [Log.Prove] and
// [Log.ProveConsistency] make documents that [CheckProof] judges offline. [Log.List] finds the newest records under any filter in about
// the same time, whether it matches everything or nothing. [Log.DropBodies] forgets payloads and keeps their hashes.
//
// What it never does: change or delete a record (triggers refuse that too), number a record inside the decision's
// transaction, sign one size with two roots, or look into a record's body.
//
// Where to start reading: record.go for what is hashed, pack.go for how a body is stored, append.go for the chain, sequence.go for the tree, verify.go for
// what must hold; posting.go and list.go for the filters.
package audit
