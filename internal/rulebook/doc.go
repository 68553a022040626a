// Package rulebook keeps the policy in force.
//
// Policy files lie where agents may be able to write, so what is on disk is a
// proposal and nothing more. What is in force is kept in the store, and a
// change on disk takes effect by itself only if it provably loosens nothing
// (policy.Loosens). Anything else is staged until an approver accepts it, at
// restart too. A file that does not load leaves the last good policy in force,
// and [Book.Status] says so until it loads again.
//
// [Book.For] returns the policy for a call: the machine's and the user's
// files, plus the files of the projects that the call works in, at and above
// its directory. A project's file tightens as soon as it is seen; it loosens
// only after an approver trusted its very digest, and taking it away, or making
// another one further down, takes nothing back.
//
// All nodes that share a database agree on one head; a node whose own policy
// differs from it loads what the head stands for, and until then its calls are
// denied by the gate.
package rulebook
